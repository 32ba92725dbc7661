use super::*;

fn stamp() -> Stamp {
    Stamp::new("sched-plugin-stack", "1.2.3", true)
}

/// The bytes of a stamp, as they lie in a file.
fn bytes(stamp: &Stamp) -> Vec<u8> {
    let mut bytes = stamp.magic.to_vec();
    for word in [stamp.size, stamp.abi_major, stamp.abi_minor, stamp.panic_unwinds] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(stamp.task_layout.to_ne_bytes());
    bytes.extend(stamp.task_size.to_ne_bytes());
    bytes.extend(stamp.pointer_width.to_ne_bytes());
    bytes.extend(stamp.layout_checker);
    bytes.extend(stamp.package);
    bytes.extend(stamp.version);
    bytes
}

#[test]
fn a_stamp_is_read_back_and_accepted() {
    let written = bytes(&stamp());
    assert_eq!(written.len(), size_of::<Stamp>(), "no padding");
    let read = Stamp::read(&written).expect("it is whole");
    assert_eq!(read, stamp());
    assert_eq!(read.check(), Ok(()));
    assert_eq!(read.package(), ("sched-plugin-stack".to_owned(), "1.2.3".to_owned()));
}

#[test]
fn a_longer_stamp_of_a_later_minor_is_accepted() {
    let later = Stamp { abi_minor: ABI_MINOR + 1, size: stamp().size + 8, ..stamp() };
    let mut written = bytes(&later);
    written.extend([0xff; 8]);
    assert_eq!(Stamp::read(&written).and_then(|stamp| stamp.check()), Ok(()));
}

#[test]
fn a_shorter_stamp_of_another_major_is_known_for_what_it_is() {
    let other = Stamp { abi_major: ABI_MAJOR + 1, ..stamp() };
    let major = StampError::Major { found: ABI_MAJOR + 1, expected: ABI_MAJOR };
    assert_eq!(Stamp::read(&bytes(&other)[..24]), Err(major));
}

#[test]
fn a_long_name_is_cut() {
    let long = "x".repeat(100);
    assert_eq!(Stamp::new(&long, "1", true).package().0, "x".repeat(64));
}

#[test]
fn what_is_no_stamp_is_not_read() {
    for wrong in [&[][..], b"sched-component", &[0; 300][..]] {
        assert_eq!(Stamp::read(wrong), Err(StampError::NotAStamp));
    }
    let written = bytes(&stamp());
    for length in [16, 100, written.len() - 1] {
        let short = StampError::Short { found: length, expected: size_of::<Stamp>() };
        assert_eq!(Stamp::read(&written[..length]), Err(short));
    }
}

#[test]
fn each_difference_is_named_with_its_fix() {
    let lines = [
        Stamp { abi_major: ABI_MAJOR + 1, ..stamp() },
        Stamp { abi_major: ABI_MAJOR - 1, ..stamp() },
        Stamp { pointer_width: 32, ..stamp() },
        Stamp::new("p", "1", false),
        Stamp { task_layout: 0, task_size: 64, ..stamp() },
        Stamp { task_layout: 0, ..stamp() },
        Stamp { layout_checker: padded("abi_stable 0.12.0"), ..stamp() },
    ]
    .map(|stamp| {
        let error = stamp.check().expect_err("it differs");
        format!("{error}: {}", error.fix())
    });
    let expected = [
        "it was built for ABI 2, this host has ABI 1: update this host, or build the plugin against an older sched-core",
        "it was built for ABI 0, this host has ABI 1: build it again against the sched-core of this host",
        "it was built for 32-bit pointers, this host has 64-bit ones: build it for this host's target",
        "it was built with panic = \"abort\", so its first panic would end this process: remove `panic = \"abort\"` from the profile that builds it",
        "its task has 64 bytes, this host's has 112: build it again against the sched-core of this host",
        "its task has 112 bytes like this host's, but its fields have other offsets: build it again against the sched-core of this host",
        "its layouts are described by abi_stable 0.12.0, expected abi_stable 0.11.3 or msched.h 1: build it again against the sched-core of this host",
    ];
    assert_eq!(lines, expected);
    let unread = [StampError::NotAStamp, StampError::Short { found: 20, expected: 192 }];
    let unread = unread.map(|error| format!("{error}: {}", error.fix()));
    let expected = [
        "its `SCHED_PLUGIN_STAMP` is not a stamp of sched-core: build it with `sched_core::export_components!` (in C with `MSCHED_PLUGIN`)",
        "its stamp has 20 bytes, expected 192 or more: build it with `sched_core::export_components!` (in C with `MSCHED_PLUGIN`)",
    ];
    assert_eq!(unread, expected);
}
