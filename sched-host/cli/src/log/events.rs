//! The program's subscriber of `tracing`: events become lines of the log.

use super::{Line, say};
use sched_tree::LogLine;
use std::fmt::{self, Write};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

/// Takes the events of this project's crates; spans are not shown.
pub(super) struct Events {
    level: LevelFilter,
}

impl Events {
    pub(super) fn new(level: LevelFilter) -> Events {
        Events { level }
    }
}

impl Subscriber for Events {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.level && metadata.target().starts_with("sched")
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        say(line(*metadata.level(), metadata.target() == LogLine::TARGET, |visitor| event.record(visitor)));
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// The line of an event; `of_component` says whether it has a node, a component and a plugin.
fn line(level: Level, of_component: bool, record: impl FnOnce(&mut Words)) -> Line {
    let level = match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    };
    let empty =
        Line { level, node: String::new(), component: String::new(), plugin: String::new(), line: String::new() };
    let mut words = Words { line: empty, of_component, others: String::new() };
    record(&mut words);
    let Words { mut line, others, .. } = words;
    if !others.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(line.line, " ({others})");
    }
    line
}

/// What an event says.
struct Words {
    line: Line,
    of_component: bool,
    /// Fields that have no place in a line of their own.
    others: String,
}

impl Visit for Words {
    fn record_str(&mut self, field: &Field, value: &str) {
        let place = match field.name() {
            "node" if self.of_component => &mut self.line.node,
            "component" if self.of_component => &mut self.line.component,
            "plugin" if self.of_component => &mut self.line.plugin,
            "message" => &mut self.line.line,
            _ => return self.record_debug(field, &format_args!("{value}")),
        };
        *place = harmless(value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.line.line = harmless(&format!("{value:?}"));
            return;
        }
        let separator = if self.others.is_empty() { "" } else { ", " };
        let _ = write!(self.others, "{separator}{} {}", field.name(), harmless(&format!("{value:?}")));
    }
}

/// The text on one line, without characters that could disturb a terminal, and not longer than a screen.
fn harmless(text: &str) -> String {
    const LONGEST: usize = 1000;
    let mut line: String =
        text.trim_end().chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.trim_end().chars().nth(LONGEST).is_some() {
        line.push('…');
    }
    line
}
