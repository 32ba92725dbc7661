use super::*;

#[test]
fn the_message_of_a_panic_is_kept_up_to_a_length() {
    let of = |text: String| panic_message(&text);
    assert!(of("short".to_owned()).starts_with("short"));
    let long = of("ü".repeat(1_000_000));
    assert!(long.chars().filter(|c| *c == 'ü').count() == LONGEST && long.contains("ü…"), "{long}");
    assert!(panic_message(&42).starts_with("a panic without a message"));
}
