use super::*;

fn line(node: &str, text: &str) -> Line {
    let [component, plugin] = if node.is_empty() { ["", ""] } else { ["queue", "mine"] }.map(str::to_owned);
    Line { level: "warn", node: node.to_owned(), component, plugin, line: text.to_owned() }
}

/// What is written of lines that two policies say in turn, seven times each, and at the end.
fn written(json: bool) -> String {
    let mut state = State::default();
    let mut written = Vec::new();
    for policy in ["tree-ws", "tree-heft"].repeat(7) {
        state.run = RunLog::of(policy);
        written.extend(state.say(None, line("fifo/queue", "it is late"), false, json));
        written.extend(state.say(None, line("", "a team is not bound"), false, json));
        assert_eq!(state.run.lines.values().collect::<Vec<_>>(), [&1, &1], "each run has its own");
    }
    written.extend(state.say(None, line("fifo/queue", "only once"), false, json));
    state.warned.insert("performance model: it cannot be read".to_owned(), 7);
    written.extend(state.rest(json));
    written.join("\n")
}

#[test]
fn nothing_is_said_seven_times() {
    insta::assert_snapshot!(written(false), @r"
    warn: tree-ws: node `fifo/queue` (queue of mine): it is late
    warn: tree-ws: a team is not bound
    warn: tree-heft: node `fifo/queue` (queue of mine): only once
    warn: a team is not bound (13 times more)
    warn: node `fifo/queue` (queue of mine): it is late (13 times more)
    performance model: it cannot be read (6 times more)
    ");
    insta::assert_snapshot!(written(true), @r#"
    {"log":{"component":"queue","level":"warn","line":"it is late","node":"fifo/queue","plugin":"mine","policy":"tree-ws"}}
    {"log":{"level":"warn","line":"a team is not bound","policy":"tree-ws"}}
    {"log":{"component":"queue","level":"warn","line":"only once","node":"fifo/queue","plugin":"mine","policy":"tree-heft"}}
    {"log":{"level":"warn","line":"a team is not bound","more":13}}
    {"log":{"component":"queue","level":"warn","line":"it is late","more":13,"node":"fifo/queue","plugin":"mine"}}
    {"warning":"performance model: it cannot be read (6 times more)"}
    "#);
}

#[test]
fn a_node_is_cut_off_and_others_are_not() {
    let mut state = State::default();
    let count = |state: &mut State, node: &str, asked: bool| {
        (0..50).filter_map(|number| state.say(None, line(node, &format!("line {number}")), asked, false)).count()
    };
    assert_eq!((count(&mut state, "a", false), count(&mut state, "b", false)), (FEW, FEW));
    insta::assert_snapshot!(state.rest(false).join("\n"), @r"
    node `a` wrote 30 more lines to the log; --log LEVEL shows all
    node `b` wrote 30 more lines to the log; --log LEVEL shows all
    ");
    assert_eq!(count(&mut State::default(), "a", true), 50);
}

#[test]
fn events_of_the_host_become_lines() {
    begin(None, false);
    tracing::error!(task = 3, place = "here", "the thread\u{1b}[2J\nis left behind");
    tracing::info!("nobody asked for this");
    let said = take();
    let lines: Vec<&str> = said.iter().map(|said| &*said.line.line).collect();
    assert_eq!(lines, ["the thread [2J is left behind (task 3, place here)"]);
    assert_eq!((said[0].line.level, &*said[0].line.node, said[0].count), ("error", "", 1));
}
