//! Flags of the simple scheduler as words.

use super::{Decide, Limit, Queue, QueuesBelow, Ready, SimpleFlags};
use crate::element::{Component, Setting};
use crate::parse::{LANGUAGE, setting};
use crate::print;
use kdl::{KdlNode, KdlValue};
use sched_core::Value;
use sched_text::Span;
use sched_text::did_you_mean;
use sched_text::kdl::Reader;
use sched_text::{Finding, Findings};
use std::fmt;

/// Name of the text in errors.
pub(super) const SOURCE: &str = "simple scheduler";

const NTASKS: &str = "ntasks-threshold";
const EXP_LEN: &str = "exp-len-threshold";

/// The largest number of tasks that a queue below may be bounded by.
const MOST: i64 = u32::MAX as i64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Decide(Decide),
    DecideAlways,
    Perfmodel,
    Above(Queue),
    Below(Queue),
    Ready(Ready),
    Exp,
    NoLimit,
    WsBelow,
    Impl,
    Combined,
}

const WORDS: [(&str, Word); 16] = [
    ("decide-workers", Word::Decide(Decide::Workers)),
    ("decide-memory-nodes", Word::Decide(Decide::MemoryNodes)),
    ("decide-archs", Word::Decide(Decide::Archs)),
    ("decide-always", Word::DecideAlways),
    ("perfmodel", Word::Perfmodel),
    ("fifo-above", Word::Above(Queue::Fifo)),
    ("fifo-above-prio", Word::Above(Queue::Prio)),
    ("fifos-below", Word::Below(Queue::Fifo)),
    ("fifos-below-prio", Word::Below(Queue::Prio)),
    ("ready", Word::Ready(Ready::Equals)),
    ("ready-first", Word::Ready(Ready::First)),
    ("exp", Word::Exp),
    ("no-limit", Word::NoLimit),
    ("ws-below", Word::WsBelow),
    ("impl", Word::Impl),
    ("combined-workers", Word::Combined),
];

/// StarPU's flags whose names differ from ours by more than capitals.
const ALIASES: [(&str, &str); 5] = [
    ("decide-memnodes", "decide-memory-nodes"),
    ("fifos-below-ready", "ready"),
    ("fifos-below-ready-first", "ready-first"),
    ("fifos-below-exp", "exp"),
    ("fifos-below-nolimit", "no-limit"),
];

impl SimpleFlags {
    /// Reads one or several schedulers. Each is the component that decides, followed by flags and parameters, up to `;`
    /// or the end of the line.
    ///
    /// # Errors
    /// All problems of the text: unknown flags and contradictions.
    ///
    /// ```
    /// use sched_policy::SimpleFlags;
    /// let flags = SimpleFlags::parse("mct beta=2.0 decide-workers perfmodel fifo-above fifos-below ready exp impl")?;
    /// assert_eq!(flags.len(), 1);
    /// assert_eq!(SimpleFlags::parse("mct decide-wrokers perfmodle").unwrap_err().findings().len(), 2);
    /// # Ok::<(), sched_text::Findings>(())
    /// ```
    pub fn parse(text: &str) -> Result<Vec<SimpleFlags>, Findings> {
        let mut reader = Reader::new(LANGUAGE, SOURCE, text);
        let mut found = Vec::new();
        match reader.document() {
            Some(document) if document.nodes().is_empty() => reader.report(
                Finding::error("a simple scheduler needs a component that decides")
                    .help("write `eager decide-workers fifo-above`, say")
                    .code("policy::flags"),
            ),
            Some(document) => found.extend(document.nodes().iter().map(|node| read(&mut reader, node))),
            None => {}
        }
        match reader.reported() == 0 {
            true => Ok(found),
            false => Err(Findings::new(SOURCE, reader.into_findings())),
        }
    }

    /// Reads one scheduler from separate words.
    ///
    /// # Errors
    /// As for [`parse`](Self::parse); and if the words describe several schedulers.
    pub fn from_names<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Result<SimpleFlags, Findings> {
        let text = names.into_iter().map(|name| name.as_ref().to_owned()).collect::<Vec<_>>().join(" ");
        let mut found = SimpleFlags::parse(&text)?;
        match (found.pop(), found.is_empty()) {
            (Some(flags), true) => Ok(flags),
            _ => {
                let finding =
                    Finding::error(format!("`{text}` is several schedulers")).help("leave out `;` and newlines");
                Err(Findings::new(SOURCE, vec![finding.breaks("V7").code("policy::flags")]))
            }
        }
    }
}

fn read(reader: &mut Reader, node: &KdlNode) -> SimpleFlags {
    let name = node.name().value();
    let mut decision = Component { span: reader.name_span(node), ..Component::new(name) };
    let mut words = Words { given: Vec::new(), unknown: false, decision: decision.span, name: name.to_owned() };
    let (mut ntasks, mut exp_len) = (None, None);
    for entry in node.entries() {
        match (entry.name().map(|name| name.value()), entry.value()) {
            (None, KdlValue::String(text)) => words.read(reader, text, reader.span(entry.span())),
            (None, _) | (Some(_), _) => match setting(reader, name, entry) {
                Some(setting) if setting.name == NTASKS => bound(reader, &mut ntasks, setting),
                Some(setting) if setting.name == EXP_LEN => bound(reader, &mut exp_len, setting),
                Some(setting) => decision.params.push(setting),
                None => {}
            },
        }
    }
    if let Some(child) = node.iter_children().next() {
        let finding = Finding::error("a simple scheduler is described by words, and has no children")
            .at(reader.name_span(child), "this is below the decision")
            .help("write a policy for a tree of your own: `sched policies` prints this one as a start")
            .code("policy::flags");
        reader.report(finding);
    }
    words.flags(reader, decision, ntasks, exp_len)
}

/// Notes a bound of the queues below, which is given once.
fn bound(reader: &mut Reader, known: &mut Option<Setting>, setting: Setting) {
    match known {
        Some(first) => {
            let finding = Finding::error(format!("`{}` is given twice", setting.name));
            let finding = finding.at(setting.span, "again here").at(first.span, "first here");
            reader.report(finding.code("policy::flags"));
        }
        None => *known = Some(setting),
    }
}

/// The words that were given.
struct Words {
    given: Vec<(&'static str, Word, Span)>,
    /// Whether further words could not be read.
    unknown: bool,
    decision: Span,
    name: String,
}

impl Words {
    fn read(&mut self, reader: &mut Reader, text: &str, span: Span) {
        let plain = text.to_lowercase().replace('_', "-");
        let plain = plain.strip_prefix("starpu-sched-simple-").unwrap_or(&plain);
        let plain = ALIASES.iter().find(|(alias, _)| *alias == plain).map_or(plain, |(_, word)| word);
        let Some((name, word)) = WORDS.iter().find(|(name, _)| *name == plain) else {
            let finding = Finding::error(format!("there is no flag `{text}` of a simple scheduler"))
                .at(span, "unknown flag")
                .help(did_you_mean(plain, WORDS.map(|(name, _)| name), "flags"))
                .code("policy::flags");
            self.unknown = true;
            return reader.report(finding);
        };
        if let Some((_, _, first)) = self.given.iter().find(|(_, known, _)| known == word) {
            let finding =
                Finding::error(format!("`{name}` is given twice")).at(span, "again here").at(*first, "first here");
            return reader.report(finding.code("policy::flags"));
        }
        self.given.push((name, *word, span));
    }

    fn has(&self, word: Word) -> bool {
        self.find(word).is_some()
    }

    fn find(&self, word: Word) -> Option<Span> {
        self.given.iter().find(|(_, known, _)| *known == word).map(|(_, _, span)| *span)
    }

    /// By priority if requested: `fifo-above-prio` defines the order of `fifo-above`.
    fn queue(&self, word: fn(Queue) -> Word) -> Option<Queue> {
        [Queue::Prio, Queue::Fifo].into_iter().find(|queue| self.has(word(*queue)))
    }

    fn flags(
        &self,
        reader: &mut Reader,
        decision: Component,
        ntasks: Option<Setting>,
        exp_len: Option<Setting>,
    ) -> SimpleFlags {
        let decide = self.decide(reader);
        let thresholds =
            [&ntasks, &exp_len].map(|setting| setting.as_ref().map(|setting| (setting.name.clone(), setting.span)));
        let below = self.queue(Word::Below);
        self.contradictions(reader, decide, below, thresholds.into_iter().flatten());
        let ntasks = ntasks.and_then(|setting| match setting.value {
            Value::Int(tasks @ 1..=MOST) => Some(tasks as u32),
            Value::Int(1..) => wrong(reader, &setting, &format!("{MOST} tasks at most"), "no-limit"),
            _ => wrong(reader, &setting, "a whole number of tasks from 1", "no-limit"),
        });
        let given = exp_len.and_then(|setting| match setting.value {
            Value::Int(length @ 1..) => Some(length as f64),
            Value::Float(length) if length > 0.0 => Some(length),
            _ => wrong(reader, &setting, "a length in µs, more than 0", "no-limit"),
        });
        let exp_len = given.or_else(|| self.has(Word::Exp).then_some(Limit::EXP_LEN));
        let limit = if self.has(Word::NoLimit) { Limit::None } else { Limit::Bounded { ntasks, exp_len } };
        let ready = [Ready::First, Ready::Equals].into_iter().find(|ready| self.has(Word::Ready(*ready)));
        let ready = ready.unwrap_or(Ready::Off);
        SimpleFlags {
            decide: decide.unwrap_or(Decide::Workers),
            perfmodel: self.has(Word::Perfmodel),
            above: self.queue(Word::Above),
            below: below.map(|queue| QueuesBelow { queue, ready, limit }),
            work_stealing_below: self.has(Word::WsBelow),
            best_implementation: self.has(Word::Impl),
            combined_workers: self.has(Word::Combined),
            ..SimpleFlags::new(decision)
        }
    }

    fn decide(&self, reader: &mut Reader) -> Option<Decide> {
        let found: Vec<(Decide, &str, Span)> = self
            .given
            .iter()
            .filter_map(|(name, word, span)| match word {
                Word::Decide(decide) => Some((*decide, *name, *span)),
                _ => None,
            })
            .collect();
        let finding = match found.as_slice() {
            [(decide, ..)] => return Some(*decide),
            [] if self.unknown => return None,
            [] => Finding::error(format!("nothing says among what `{}` decides", self.name))
                .at(self.decision, "decides")
                .help("add `decide-workers`, `decide-memory-nodes` or `decide-archs`"),
            [(_, one, first), (_, other, second), ..] => {
                Finding::error(format!("`{one}` and `{other}` contradict each other"))
                    .at(*second, "among these")
                    .at(*first, "or these")
                    .help("a branch is a worker, a memory node or an architecture: leave out all but one")
            }
        };
        reader.report(finding.code("policy::flags"));
        found.first().map(|(decide, ..)| *decide)
    }

    fn contradictions(
        &self,
        reader: &mut Reader,
        decide: Option<Decide>,
        below: Option<Queue>,
        thresholds: impl Iterator<Item = (String, Span)> + Clone,
    ) {
        let about_queues =
            [Word::Ready(Ready::Equals), Word::Ready(Ready::First), Word::Exp, Word::NoLimit].into_iter();
        let words = about_queues.filter_map(|word| self.given.iter().find(|(_, given, _)| *given == word));
        let words = words.map(|(name, _, span)| ((*name).to_owned(), *span)).chain(thresholds.clone());
        // An unreadable word may have been the missing one.
        if below.is_none() && !self.unknown {
            for (name, span) in words {
                let finding = Finding::error(format!("`{name}` is about the queues below, and there are none"))
                    .at(span, "of which queues?")
                    .help("add `fifos-below` or `fifos-below-prio`");
                reader.report(finding.code("policy::flags"));
            }
        }
        let mut contradiction = |one: Option<Span>, other: Option<Span>, names: (&str, &str), why: &str| {
            let (Some(one), Some(other)) = (one, other) else { return };
            let finding = Finding::error(format!("`{}` and `{}` contradict each other", names.0, names.1))
                .at(one, "this")
                .at(other, "or this")
                .help(why);
            reader.report(finding.code("policy::flags"));
        };
        contradiction(
            self.find(Word::Ready(Ready::First)),
            self.find(Word::Below(Queue::Prio)),
            ("ready-first", "fifos-below-prio"),
            "one sorts by data first, the other by priority: write `ready`, or `fifos-below`",
        );
        for (name, span) in thresholds {
            let why = "a queue has a bound or has none: leave out one of them";
            contradiction(Some(span), self.find(Word::NoLimit), (&name, "no-limit"), why);
        }
        if let (Some(combined), Some(Decide::MemoryNodes | Decide::Archs)) = (self.find(Word::Combined), decide) {
            let finding = Finding::error("combined workers are decided among workers")
                .at(combined, "not below a memory node or an architecture")
                .help("write `decide-workers`, or leave out `combined-workers`");
            reader.report(finding.code("policy::flags"));
        }
    }
}

fn wrong<T>(reader: &mut Reader, setting: &Setting, expected: &str, none: &str) -> Option<T> {
    let finding = Finding::error(format!("`{}` is {}", setting.name, print::value(&setting.value)))
        .at(setting.value_span, format!("expected {expected}"))
        .help(format!("write `{none}` for queues without bound"));
    reader.report(finding.code("policy::flags"));
    None
}

/// The flags, as [`parse`](SimpleFlags::parse) reads them. Components [before](SimpleFlags::before) the decision have
/// no flag.
impl fmt::Display for SimpleFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print::component_head(&self.decision))?;
        let mut say = |word: Word| {
            let name = WORDS.iter().find(|(_, known)| *known == word).map_or("", |(name, _)| name);
            write!(f, " {name}")
        };
        say(Word::Decide(self.decide))?;
        let flags = [
            (self.perfmodel, Word::Perfmodel),
            (self.above == Some(Queue::Fifo), Word::Above(Queue::Fifo)),
            (self.above == Some(Queue::Prio), Word::Above(Queue::Prio)),
        ];
        flags.into_iter().filter(|(given, _)| *given).try_for_each(|(_, word)| say(word))?;
        if let Some(QueuesBelow { queue, ready, limit }) = self.below {
            say(Word::Below(queue))?;
            if ready != Ready::Off {
                say(Word::Ready(ready))?;
            }
            match limit {
                Limit::None => say(Word::NoLimit)?,
                Limit::Bounded { exp_len: Some(Limit::EXP_LEN), .. } => say(Word::Exp)?,
                Limit::Bounded { .. } => {}
            }
        }
        let flags = [
            (self.work_stealing_below, Word::WsBelow),
            (self.best_implementation, Word::Impl),
            (self.combined_workers, Word::Combined),
        ];
        flags.into_iter().filter(|(given, _)| *given).try_for_each(|(_, word)| say(word))?;
        if let Some(QueuesBelow { limit: Limit::Bounded { ntasks, exp_len }, .. }) = self.below {
            if let Some(tasks) = ntasks {
                write!(f, " {NTASKS}={tasks}")?;
            }
            if let Some(length) = exp_len.filter(|length| *length != Limit::EXP_LEN) {
                write!(f, " {EXP_LEN}={}", print::value(&Value::Float(length)))?;
            }
        }
        Ok(())
    }
}
