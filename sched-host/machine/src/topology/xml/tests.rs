//! Every damage that hwloc would stumble over is named with its place.

use super::checked;

const FIXTURE: &str = include_str!("../testdata/two-memories.xml");

fn problem(from: &str, to: &str) -> String {
    assert!(FIXTURE.contains(from), "{from}");
    checked(&FIXTURE.replacen(from, to, 1)).expect_err(to).to_string()
}

#[test]
fn what_is_missing_or_contradicts_itself_has_a_place() {
    let problems = [
        problem(" cpuset=\"0x000000ff\"", ""),
        problem("\"PU\" os_index=\"1\" cpuset=\"0x00000002\"", "\"PU\" os_index=\"1\""),
        problem("\"PU\" os_index=\"1\"", "\"PU\""),
        problem("\"PU\" os_index=\"1\"", "\"PU\" os_index=\"0\""),
        problem(
            "complete_cpuset=\"0x0000000f\" nodeset=\"0x00000003\"",
            "complete_cpuset=\"0x0000001f\" nodeset=\"rubbish\"",
        ),
        problem("cpuset=\"0x00000003\"", "cpuset=\"0x00000013\""),
        problem("cpuset=\"0x00000003\"", "cpuset=\"0xf...f\""),
        problem("type=\"Core\"", "type=\"Kern\""),
        problem("\"17179869184\"", "\"1e9\""),
        problem("<topology version=\"2.0\">", "<topology version=\"7\">"),
        problem("</topology>", "</topologie>"),
        problem("<topology", "<!DOCTYPE x [<!ENTITY a \"b\">]><topology"),
    ];
    insta::assert_snapshot!(problems.join("\n"), @r"
    line 4, column 3: the Machine `0` has no `cpuset`
    line 19, column 11: the PU `1` has no `cpuset`
    line 19, column 11: the PU has no `os_index`
    line 19, column 11: PU 0 is there already; line 19, column 11: the `cpuset` of PU 0 is not that PU
    line 9, column 90: `nodeset` is `rubbish`, expected a set of memory nodes such as `0x0000000f`
    line 17, column 9: the `cpuset` of the Core has PUs that its `complete_cpuset` lacks; line 17, column 9: the Core has PUs that the object around it lacks
    line 17, column 42: `cpuset` is `0xf...f`, expected a set of PUs such as `0x0000000f`
    line 17, column 9: an object has the type `Kern`, which is unknown
    line 10, column 158: `local_memory` is `1e9`, expected a number up to 36028797018963967
    line 3, column 1: it has the version `7` of the format, expected 1 or 2
    line 50, column 1: expected 'topology' tag, not 'topologie'
    line 3, column 14: entities are declared, which no topology needs
    ");
}

#[test]
fn a_machine_without_any_sets_has_a_line_for_each_object_up_to_ten() {
    let bare: String = FIXTURE
        .split(' ')
        .filter(|word| {
            !["cpuset=", "complete_cpuset=", "nodeset=", "complete_nodeset="].iter().any(|set| word.starts_with(set))
        })
        .collect::<Vec<_>>()
        .join(" ");
    let problems = checked(&bare).expect_err("nothing is left").to_string();
    assert!(problems.starts_with("line 4, column 3: the Machine `0` has no `cpuset`; "), "{problems}");
}

#[test]
fn devices_and_notes_are_left_out_and_the_rest_is_kept() {
    let with = FIXTURE.replacen(
        "<object type=\"Package\"",
        "<object type=\"Bridge\"><object type=\"PCIDev\"/></object><object type=\"Package\"",
        1,
    );
    let text = checked(&with).expect("a device is no damage");
    assert_eq!(text, checked(FIXTURE).expect("it is sound"));
    assert_eq!(text.matches("<object ").count(), FIXTURE.matches("<object ").count());
    assert!(!text.contains("info") && text.contains("local_memory=\"17179869184\""));
}
