//! The set that many look at and few change, under loom: whoever was put in is seen, and taken out once.
//!
//! Each of these, done by hand to `set.rs`, makes a model fail: a summary bit that is set, or cleared, without the
//! lock; one that is cleared without a look at the word; one that is never cleared.

use super::SharedSet;
use loom::sync::Arc;
use loom::thread;

fn model(body: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 20_000;
    builder.check(body);
}

/// Two share a word: whoever looks after both have done what they do finds who is there, and nobody else.
#[test]
fn who_is_there_is_seen() {
    model(|| {
        let set = Arc::new(SharedSet::new(128));
        set.insert(64);
        let other = {
            let set = Arc::clone(&set);
            thread::spawn(move || {
                set.insert(65);
                assert!(!set.is_empty(), "nobody takes it out");
                assert!(set.words(1..2).any(|(_, bits)| bits & 2 != 0));
            })
        };
        assert!(set.remove(64));
        other.join().unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [65]);
        assert!(set.remove(65));
        assert!(set.is_empty());
    });
}

/// One goes in and out again and again, while another is put in for good.
#[test]
fn who_stays_is_seen_while_others_come_and_go() {
    model(|| {
        let set = Arc::new(SharedSet::new(64));
        let other = {
            let set = Arc::clone(&set);
            thread::spawn(move || {
                for _ in 0..2 {
                    set.insert(1);
                    assert!(set.remove(1));
                }
            })
        };
        set.insert(0);
        assert!(set.words(0..1).any(|(_, bits)| bits & 1 != 0));
        other.join().unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0]);
    });
}

/// Of two who take the same number out, one learns that it was there.
#[test]
fn a_member_is_taken_out_once() {
    model(|| {
        let set = Arc::new(SharedSet::new(64));
        set.insert(7);
        let other = {
            let set = Arc::clone(&set);
            thread::spawn(move || set.remove(7))
        };
        let here = set.remove(7);
        assert!(here != other.join().unwrap());
        assert!(set.is_empty() && !set.contains(7));
    });
}
