//! Errors as JSON.

use miette::{Diagnostic, Severity, SourceCode, SourceSpan};
use serde_json::{Map, Value};

/// An error as an object.
///
/// `message` describes the problem. Where known, there are also `severity` (`warning` or `advice`; an error without),
/// `code`, `help`, `file`, `line` and `column` (from 1), `causes` (messages, from the outermost to the innermost), and
/// `errors`: its parts, in the same form, behind its cause where that says more than its message.
pub(super) fn error(error: &dyn Diagnostic) -> Value {
    with_source(error, error.source_code())
}

fn with_source(error: &dyn Diagnostic, source: Option<&dyn SourceCode>) -> Value {
    let mut object = Map::new();
    object.insert("message".to_owned(), error.to_string().into());
    let severity = match error.severity() {
        None | Some(Severity::Error) => None,
        Some(Severity::Warning) => Some("warning"),
        Some(Severity::Advice) => Some("advice"),
    };
    let texts = [
        ("severity", severity.map(str::to_owned)),
        ("code", error.code().map(|code| code.to_string())),
        ("help", error.help().map(|help| help.to_string())),
    ];
    for (key, text) in texts {
        object.extend(text.map(|text| (key.to_owned(), text.into())));
    }
    object.extend(place(error, source).into_iter().flatten());
    let mut causes: Vec<Value> = Vec::new();
    let mut cause = error.source();
    while let Some(inner) = cause {
        causes.push(inner.to_string().into());
        cause = inner.source();
    }
    let parts = error.related().into_iter().flatten();
    let parts = parts.map(|part| with_source(part, part.source_code().or(source)));
    let cause = error.diagnostic_source().map(self::error);
    let says_more = |cause: &Value| cause.as_object().is_some_and(|keys| keys.len() > 1);
    let parts: Vec<Value> = cause.filter(says_more).into_iter().chain(parts).collect();
    for (key, list) in [("causes", causes), ("errors", parts)] {
        if !list.is_empty() {
            object.insert(key.to_owned(), list.into());
        }
    }
    object.into()
}

/// The file, line and column of the first label.
fn place(error: &dyn Diagnostic, source: Option<&dyn SourceCode>) -> Option<[(String, Value); 3]> {
    let label = error.labels()?.next()?;
    let span: &SourceSpan = label.inner();
    let contents = source?.read_span(span, 0, 0).ok()?;
    let name = contents.name().map_or(Value::Null, Into::into);
    let key = str::to_owned;
    Some([
        (key("file"), name),
        (key("line"), (contents.line() + 1).into()),
        (key("column"), (contents.column() + 1).into()),
    ])
}

/// An error of the command line, in the same form.
pub(super) fn usage(error: &clap::Error) -> Value {
    let shown = error.to_string();
    let (message, help) = shown.split_once("\n\n").unwrap_or((&shown, ""));
    let message = message.strip_prefix("error: ").unwrap_or(message).trim();
    serde_json::json!({ "message": message, "code": "usage", "help": help.trim() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Command;

    #[test]
    fn every_problem_has_its_place() {
        let text = "2\n0 0 0\n1 x 1 0\n2 5 1 9\n";
        let malformed = sched_graph::parse("t.stg", text.to_owned(), None).expect_err("it is malformed");
        let object = error(&malformed);
        assert!(object["message"].as_str().is_some_and(|message| message.contains("`t.stg`")), "{object}");
        let first = &object["errors"][0];
        assert_eq!((&first["file"], &first["line"], &first["column"]), (&"t.stg".into(), &3.into(), &3.into()));
        assert!(first["message"].as_str().is_some_and(|message| message.contains("processing time")), "{object}");
    }

    #[test]
    fn a_cause_keeps_its_place_and_its_help() {
        let object = error(&Outer(sched_policy::parse("a.kdl", "policy \"a\" {").expect_err("it is malformed")));
        assert_eq!((&object["message"], &object["causes"][0]), (&"outer".into(), &object["errors"][0]["message"]));
        let first = &object["errors"][0]["errors"][0];
        assert_eq!((&first["file"], &first["line"]), (&"a.kdl".into(), &1.into()), "{object}");
        #[derive(Debug, thiserror::Error, Diagnostic)]
        #[error("outer")]
        struct Outer(
            #[source]
            #[diagnostic_source]
            sched_text::Findings,
        );
    }

    #[test]
    fn causes_are_reported_from_the_outermost() {
        let report = miette::miette!(code = "a::b", help = "do this", "inner").wrap_err("outer");
        insta::assert_snapshot!(error(report.as_ref()), @r#"{"causes":["inner"],"code":"a::b","help":"do this","message":"outer"}"#);
    }

    #[test]
    fn a_command_line_that_is_not_understood_says_why() {
        let command = Command::new("sched").arg(clap::Arg::new("n").long("number").value_parser(["1", "2"]));
        let error = command.try_get_matches_from(["sched", "--number", "3"]).expect_err("it is not understood");
        let object = usage(&error);
        assert_eq!(object["message"], "invalid value '3' for '--number <n>'\n  [possible values: 1, 2]");
        assert_eq!(object["code"], "usage");
    }
}
