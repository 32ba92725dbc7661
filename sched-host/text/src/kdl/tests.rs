//! What a reader gives, and what it reports.

use super::{Language, Reader, Signature};
use crate::quantity::{TIME, parse_time};

const LANGUAGE: Language = Language { name: "menu", node: "dish", rule: "M1" };
const DISH: Signature = Signature {
    arguments: 1,
    properties: &["price", "for", "arch", "hot", "share", "change", "time", "note"],
    example: "dish \"soup\" price=3",
};

/// Reads each dish of a text, and what is wrong: line, column, code, message, and what was expected there.
fn read(text: &str) -> String {
    let mut reader = Reader::new(LANGUAGE, "menu.kdl", text);
    let document = reader.document();
    for node in document.iter().flat_map(|document| document.nodes()) {
        if node.name().value() != "dish" {
            let finding = reader.misplaced(node, "on a menu", "a menu", &["dish"]);
            reader.report(finding);
            continue;
        }
        let mut dish = reader.open(node, &DISH);
        let _ = (dish.argument(0, "a name"), dish.whole("price", 1..=99), dish.arch("arch"), dish.flag("hot"));
        let _ = (dish.positive("share"), dish.number("change"), dish.quantity("time", parse_time, TIME));
        let _ = dish.text("note");
        if !dish.has("for") {
            dish.missing("for", "\"two\"");
        }
    }
    let findings = reader.into_findings();
    let lines = findings.iter().map(|finding| {
        let Some((file, line, column)) = finding.position() else { return finding.to_string() };
        let help = miette::Diagnostic::help(finding).map_or_else(String::new, |help| format!(" ({help})"));
        format!("{file}:{line}:{column} {} {}: {finding}{help}", finding.id(), finding.rule())
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn values_of_the_right_types_are_read() {
    let text = "dish \"soup\" price=7 arch=\"cpu\" hot=#true share=0.5 change=-1 time=\"3 ms\" note=\"µ\" for=\"two\"";
    assert_eq!(read(text), "");
    let mut reader = Reader::new(LANGUAGE, "menu.kdl", text);
    let document = reader.document().expect("it is KDL");
    let mut dish = reader.open(&document.nodes()[0], &DISH);
    assert_eq!(dish.argument(0, "a name").map(|(name, _)| name).as_deref(), Some("soup"));
    assert_eq!((dish.whole("price", 1..=99), dish.flag("hot"), dish.flag("cold")), (Some(7), true, false));
    assert_eq!((dish.positive("share"), dish.number("change")), (Some(0.5), Some(-1.0)));
    assert_eq!(dish.arch("arch"), Some(sched_core::Arch::CPU));
    assert_eq!(dish.quantity("time", parse_time, TIME), Some(std::time::Duration::from_millis(3)));
}

#[test]
fn everything_that_is_wrong_is_reported_with_its_place() {
    let text = "dish\ndihs \"soup\"\ndish 3 \"more\" price=100 pirce=1 hot=1 for=1\n\
                dish \"a\" arch=\"cup\" share=0 change=\"1\" time=\"3 parsecs\" note=1 note=\"2\" for=1\n(x)dish \"b\" for=1";
    insta::assert_snapshot!(read(text), @r#"
    menu.kdl:1:1 M1 menu::dish: `dish` lacks a name (write `dish "soup" price=3`)
    menu.kdl:1:1 M1 menu::dish: `dish` has no `for` (write `for="two"`)
    menu.kdl:2:1 M1 menu::unknown-node: `dihs` cannot stand on a menu (did you mean `dish`?)
    menu.kdl:3:8 M1 menu::dish: `dish` takes 1 argument (write `dish "soup" price=3`)
    menu.kdl:3:25 M1 menu::dish: `dish` has no property `pirce` (did you mean `price`?)
    menu.kdl:3:6 M1 menu::dish: `dish` is given 3 (write `dish "soup" price=3`)
    menu.kdl:3:21 M1 menu::dish: `price` is 100
    menu.kdl:3:37 M1 menu::dish: `hot` is 1
    menu.kdl:4:64 M1 menu::dish: `note` is given twice
    menu.kdl:4:15 M1 menu::arch: there is no architecture `cup` (architectures: `cpu`, `cuda`, `opencl`, `hip`, `sycl`, `mpi`, `fpga`)
    menu.kdl:4:27 M1 menu::dish: `share` is 0
    menu.kdl:4:36 M1 menu::dish: `change` is "1"
    menu.kdl:4:45 M1 menu::dish: `time` is "3 parsecs"
    menu.kdl:5:4 M1 menu::annotation: the type annotation `(x)` means nothing in a menu (leave it out)
    "#);
}

#[test]
fn what_is_no_kdl_is_a_finding_of_the_language() {
    insta::assert_snapshot!(read("dish {\n"), @"menu.kdl:1:6 M1 menu::syntax: the `{` of `dish` is not closed (add a `}` behind what stands in it)");
}

#[test]
fn a_node_that_is_read_again_is_wrong_once() {
    let mut reader = Reader::new(LANGUAGE, "menu.kdl", "dish");
    let document = reader.document().expect("it is KDL");
    for _ in 0..3 {
        assert!(reader.open(&document.nodes()[0], &DISH).argument(0, "a name").is_none());
    }
    assert_eq!(reader.reported(), 1);
}

/// Time for one text of the following tests: none takes a second, and what is superlinear takes minutes.
const LIMIT: std::time::Duration = std::time::Duration::from_secs(60);

#[test]
fn long_texts_of_errors_are_refused_at_the_first_ones() {
    for text in [
        "}",
        "/- ",
        "*/",
        "a{}",
        "};",
        "=1",
        "\"",
        "#",
        "a /- {",
        "/- a {",
        "{",
        "/*",
        "\\",
        "(",
        "1\"a b\" ",
        "a \"}\" {",
    ] {
        for before in ["", "dish \"soup\" for=1\n", "dish {\n", "dish /* "] {
            let (text, begin) = (format!("{before}{}", text.repeat(20_000)), std::time::Instant::now());
            let found = read(&text);
            assert!(found.starts_with("menu.kdl:") && found.contains("menu::syntax"), "{}: {found}", &text[..20]);
            assert!(begin.elapsed() < LIMIT, "{}: {:?}", &text[..20], begin.elapsed());
        }
    }
}

#[test]
fn long_texts_without_errors_are_read() {
    let one = "dish \"soup\" for=1";
    let many = |text: &str| text.repeat(10_000);
    for text in [
        many(&format!("{one}\n")),
        format!("/{}/\n{one}", many("*")),
        format!("/*{}*/\n{one}", many("\n * / ")),
        format!("{}{one}", many("/- dish {\n}\n")),
        format!("{one} note=\"{}\"", many("}{/-/*")),
        format!("{}{one}{}", "/- dish { dish /- {".repeat(30), "}\n}\n".repeat(30)),
        format!("{one} {}", "/- { dish ".repeat(60) + &"}".repeat(60)),
        format!("// {}\n{one}", many("{/*")),
    ] {
        let begin = std::time::Instant::now();
        assert_eq!(read(&text), "", "{}", &text[..20]);
        assert!(begin.elapsed() < LIMIT, "{}: {:?}", &text[..20], begin.elapsed());
    }
}

#[test]
fn problems_behind_each_other_are_all_reported() {
    insta::assert_snapshot!(read("dish \"a\" }\ndish true\n}\ndish for="), @"
    menu.kdl:1:10 M1 menu::syntax: a `}` closes nothing (take it away, or add the `{` that it should close)
    menu.kdl:3:1 M1 menu::syntax: a `}` closes nothing (take it away, or add the `{` that it should close)
    menu.kdl:2:6 M1 menu::syntax: Expected identifier string (write `#true`)
    menu.kdl:4:1 M1 menu::syntax: Expected property value (a dish is written `name param=value { children }`)
    ");
    insta::assert_snapshot!(read("/- /- dish"), @"menu.kdl:1:4 M1 menu::syntax: a `/-` follows another one (write one `/-` before what is to be left out)");
}

#[test]
fn what_the_parser_does_not_explain_is_explained() {
    insta::assert_snapshot!(read("dish \"a\" for=1 { /- eager; fish; }"), @"menu.kdl:1:26 M1 menu::syntax: a `;` follows what `/-` leaves out (end the line instead of writing `;`, or use `/*` and `*/`)");
    insta::assert_snapshot!(read("dish \"a\" for=1;; dish \"b\" for=1"), @"menu.kdl:1:16 M1 menu::syntax: a `;` ends nothing (leave it out)");
    insta::assert_snapshot!(read("dish \"\"\"\n  a\n b\n  \"\"\" for=1\ndish \"b\" for=1"), @r#"menu.kdl:3:1 M1 menu::syntax: a line of a text is indented less than the text's end, or otherwise (begin each line with the same blanks as the line of the closing `"""`)"#);
    insta::assert_snapshot!(read("di\u{1b}[31msh \"b\" for=1"), @r"menu.kdl:1:3 M1 menu::syntax: a word contains the control character 0x1b (take it away; in quotes, it is written `\u{1b}`)");
}

#[test]
fn what_a_text_contains_does_not_reach_the_terminal() {
    use miette::Diagnostic;
    let mut reader = Reader::new(LANGUAGE, "menu.kdl", "di\u{1b}[31msh // \u{1b}[31m\n\"a\\u{1b}[31m\"");
    assert!(reader.document().is_none());
    let mut named = Reader::new(LANGUAGE, "menu.kdl", "\"a\\u{1b}[31m\" // \u{7f}");
    let document = named.document().expect("it is KDL");
    let finding = named.misplaced(&document.nodes()[0], "here", "a menu", &[]);
    named.report(finding);
    for finding in reader.into_findings().into_iter().chain(named.into_findings()) {
        let mut drawn = Diagnostic::help(&finding).map_or_else(String::new, |help| help.to_string());
        let drawing = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor());
        drawing.render_report(&mut drawn, &finding).expect("memory takes everything");
        assert!(drawn.contains("menu.kdl") && !drawn.contains(['\u{1b}', '\u{7f}']), "{drawn}");
    }
}

#[test]
fn the_comment_above_a_node_is_that_of_the_text() {
    let text = "// A menu.\n\n// Hot.\n//Cheap.\ndish \"soup\" { // inside\n    // Below.\n    dish \"bread\"; dish \"water\"\n}\n";
    let mut reader = Reader::new(LANGUAGE, "menu.kdl", text);
    let document = reader.document().expect("the text is right");
    let [soup] = document.nodes() else { panic!("one dish is at the top") };
    let below: Vec<String> = soup.iter_children().map(|node| reader.comment_above(node)).collect();
    assert_eq!(reader.comment_above(soup), "Hot.\nCheap.");
    assert_eq!(below, ["Below.", ""], "the comment is that of the first node of the line");
}
