//! What all commands have in common.

use crate::{Cli, understood};
use clap::{Arg, Command as Clap, CommandFactory};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Options that mean the same wherever they are.
const SHARED: [&str; 17] = [
    "policy",
    "set",
    "platform",
    "synthetic",
    "xml",
    "starpu-sampling",
    "seed",
    "format",
    "json",
    "context",
    "trace",
    "gantt",
    "powercap",
    "graph",
    "rounds",
    "where",
    "sched-data",
];

/// All commands that do something, with the words that name them.
fn commands() -> Vec<(String, Clap)> {
    fn below(command: &Clap, words: &str, all: &mut Vec<(String, Clap)>) {
        let words = format!("{words} {}", command.get_name());
        if !command.has_subcommands() {
            all.push((words.trim().to_owned(), command.clone()));
        }
        command.get_subcommands().filter(|it| it.get_name() != "help").for_each(|it| below(it, &words, all));
    }
    let (mut command, mut all) = (Cli::command(), Vec::new());
    command.build();
    below(&command, "", &mut all);
    all
}

fn option<'c>(command: &'c Clap, long: &str) -> Option<&'c Arg> {
    command.get_arguments().find(|arg| arg.get_long() == Some(long))
}

/// What a user sees of an option.
fn shown(arg: &Arg) -> String {
    let help = |help: Option<&clap::builder::StyledStr>| help.map(ToString::to_string).unwrap_or_default();
    let values: Vec<&str> = arg.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect();
    let (short, long_help) = (arg.get_short(), help(arg.get_long_help()));
    format!("-{short:?} {values:?} {:?}: {} {long_help}", arg.get_action(), help(arg.get_help()))
}

#[test]
fn shared_options_have_the_same_name_and_help_everywhere() {
    for long in SHARED {
        let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (words, command) in commands() {
            if let Some(arg) = option(&command, long) {
                seen.entry(shown(arg)).or_default().push(words);
            }
        }
        assert_eq!(seen.len(), 1, "--{long} has one meaning: {seen:#?}");
    }
}

#[test]
fn only_commands_that_draw_take_formats_of_drawings() {
    for (words, command) in commands() {
        let Some(arg) = option(&command, "format") else { continue };
        let takes = |format: &str| arg.get_possible_values().iter().any(|value| value.matches(format, false));
        let of = |names: &[&str]| names.iter().any(|name| words == format!("sched {name}"));
        assert_eq!(takes("svg"), of(&["tree", "topology", "graph"]), "{words}");
        assert_eq!(takes("dot"), of(&["tree", "topology", "graph", "check"]), "{words}");
    }
}

#[test]
fn workers_are_a_number_or_a_list_of_numbers() {
    for (words, command) in commands() {
        let Some(arg) = option(&command, "workers") else { continue };
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let is_list = help == "Numbers of workers, separated by commas";
        assert_eq!(arg.get_short(), Some('w'), "{words}");
        assert!(is_list || help.starts_with("Number of CPU workers [default: one for each"), "{words}: {help}");
    }
}

#[test]
fn commands_have_the_options_that_they_can_have() {
    let without = |names: &[&str], long: &str| -> Vec<String> {
        let lacks = |(words, command): (String, Clap)| option(&command, long).is_none().then_some(words);
        let lacking = commands().into_iter().filter_map(lacks);
        lacking.filter(|words| !names.iter().any(|name| words.starts_with(&format!("sched {name}")))).collect()
    };
    assert_eq!(without(&["completions", "man", "model plot", "platform"], "json"), [""; 0]);
    assert_eq!(without(&["completions", "man", "model plot", "platform"], "format"), [""; 0]);
    let no_policy = [
        "plugins",
        "plugin",
        "policies",
        "topology",
        "platform",
        "graph",
        "model",
        "bench decision",
        "completions",
        "man",
    ];
    assert_eq!(without(&no_policy, "policy"), [""; 0]);
    let this_machine =
        ["run", "plugins", "plugin", "policies", "platform", "graph", "model", "bench", "completions", "man"];
    for long in ["platform", "synthetic", "xml", "starpu-sampling"] {
        assert_eq!(without(&this_machine, long), [""; 0], "--{long}");
    }
    for long in ["context", "trace", "gantt"] {
        let others = [
            "plugins",
            "plugin",
            "policies",
            "tree",
            "check",
            "topology",
            "platform",
            "graph",
            "model",
            "bench",
            "completions",
            "man",
        ];
        assert_eq!(without(&others, long), [""; 0], "--{long}");
    }
}

#[test]
fn every_command_says_what_it_does() {
    for (words, command) in commands() {
        assert!(command.get_about().is_some(), "{words}");
        for arg in command.get_arguments() {
            assert!(arg.get_help().is_some(), "{words}: {}", arg.get_id());
        }
    }
}

#[test]
fn the_command_line_is_consistent() {
    Cli::command().debug_assert();
}

#[test]
fn names_are_completed_and_files_can_be_given() {
    let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
    assert!(understood(&words("sched tree mine.kdl --platform ./machine.kdl")).is_ok());
    let mut script = Vec::new();
    clap_complete::generate(clap_complete::Shell::Bash, &mut Cli::command(), "sched", &mut script);
    let script = String::from_utf8(script).expect("scripts are text");
    assert!(script.contains("tree-heft") && script.contains("cpu9-gpu3"), "names are completed");
}

#[test]
fn the_standard_streams_are_given_once() {
    let refused = |line: &str| {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        understood(&words).err().map(|error| (error.exit_code(), error.to_string()))
    };
    let (code, display_text) = refused("sched simulate - --policy -").expect("there is one standard input");
    assert!(code == 2 && display_text.contains("`-` is given 2 times for the standard input"), "{display_text}");
    assert!(refused("sched simulate lu --trace - --gantt -").is_some());
    assert!(refused("sched simulate - --gantt -").is_none());
    for line in [
        "sched simulate - --goals -",
        "sched simulate - --swap-to=-@1ms",
        "sched run lu --matrix - --swap-to -",
        "sched simulate - --context a:policy=-,workers=0",
        "sched simulate lu --policy=-,-+mct.beta=2.0",
        "sched simulate - --policy=-#a",
    ] {
        let (code, text) = refused(line).unwrap_or_else(|| panic!("{line}: there is one standard input"));
        assert!(code == 2 && text.contains("for the standard input"), "{line}: {text}");
    }
    for line in ["sched simulate lu --policy=-#a,-#b", "sched simulate lu --policy - --trace -"] {
        assert!(refused(line).is_none(), "{line}");
    }
}

#[test]
fn an_output_does_not_replace_what_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let (read, link) = (file("x.json"), file("link.json"));
    std::fs::write(&read, "{}").expect("it can be written");
    std::os::unix::fs::symlink(&read, &link).expect("a link");
    let dotted = format!("{}/./x.json", folder.path().display());
    let refused = |words: &[&str]| {
        let words: Vec<OsString> = ["sched"].iter().chain(words).map(OsString::from).collect();
        understood(&words).err().map(|error| error.to_string()).unwrap_or_default()
    };
    for output in [&read, &link, &dotted] {
        for input in [&read, &link] {
            let error = refused(&["simulate", input, "--trace", output]);
            assert!(error.contains(&format!("`{output}` is given for --trace, which would replace")), "{error}");
        }
    }
    let policy = format!("a:policy={read}#one+mct.beta=2.0");
    for words in [
        ["run", "lu", "--matrix", &read, "--record", &read],
        ["compare", "lu", "--policy", &format!("tree-ws,{read}"), "--html", &link],
        ["simulate", "lu", "--swap-to", &format!("{read}@1ms"), "--events", &read],
        ["simulate", "lu", "--context", &policy, "--events", &read],
        ["simulate", "lu", "--goals", &read, "--events", &read],
    ] {
        assert!(refused(&words).contains("would replace what the command reads"), "{words:?}");
    }
    assert_eq!(refused(&["simulate", &read, "--trace", &file("y.json")]), "");
    // Each of several policies has a file.
    let (graph, trace) = (file("y-tree-ws.json"), file("y.json"));
    std::fs::write(&graph, "{}").expect("it can be written");
    for words in [
        &["simulate", &graph, "--trace", &trace, "--policy", "tree-eager,tree-ws"][..],
        &["simulate", &graph, "--events", &trace, "--policy", "all"],
        &["compare", &graph, "--trace", &trace],
        &["compare", "lu", "--goals", &graph, "--trace", &trace, "--policy", "tree-ws"],
    ] {
        let error = refused(words);
        assert!(error.contains("y-tree-ws.json` is given for --") && error.contains("would replace"), "{error}");
    }
    assert_eq!(refused(&["simulate", &graph, "--trace", &trace, "--policy", "tree-ws"]), "");
}

#[test]
fn one_file_takes_one_output() {
    let refused = |line: &str| {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        understood(&words).err().map(|error| error.to_string()).unwrap_or_default()
    };
    let error = refused("sched simulate cholesky --trace a.json --events ./a.json");
    assert!(error.contains("`./a.json` is given for --trace and for --events: name another file for one"), "{error}");
    assert_eq!(refused("sched simulate cholesky --trace a.json --events b.json"), "");
    let error = refused("sched compare lu --gantt a.svg --html a-HEFT--static.svg");
    assert!(error.contains("a-HEFT--static.svg` is given for --gantt and for --html"), "{error}");
    for line in ["sched run lu --record ", "sched compare lu --html ", "sched simulate lu --events "] {
        assert!(refused(line).contains("is empty: name a file"), "{line}");
    }
    assert!(refused("sched model plot gemm -o a.png").contains("must end in .svg"));
}
