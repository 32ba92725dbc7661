use super::{MOST, list};

#[test]
fn a_list_has_as_many_entries_as_the_limit_says() {
    let read = |entries: usize| {
        let mut whole = vec![Some(7_u8); entries];
        whole.push(None);
        let mut faults = Vec::new();
        // SAFETY: `None` ends the list.
        let found = unsafe { list(whole.as_ptr(), |entry| *entry, &mut faults) };
        (found.len(), faults)
    };
    for entries in [0, 1, MOST - 1, MOST] {
        assert_eq!(read(entries), (entries, vec![]));
    }
    let (_, faults) = read(MOST + 1);
    assert_eq!(faults, [format!("has a list of more than {MOST} entries, which should end with a null")]);
}
