use super::*;
use crate::{CodeletModel, Model, Power, Prior, Quantity, SizeInfo, Variant};
use proptest::prelude::*;
use sched_core::Arch;
use std::path::Path;

const CPU: Variant = Variant::of(Arch::CPU);
const KEY: (Variant, Quantity) = (CPU, Quantity::Time);

fn size(bytes: u64) -> SizeInfo<'static> {
    SizeInfo { footprint: bytes as u32 * 3, bytes, flops: Some(12.5), params: &[2.0, 0.1] }
}

/// `count` samples of a task.
fn samples(count: usize) -> Measurements {
    let mut measurements = Measurements::default();
    let measured = measurements.variants.entry(KEY).or_default();
    (0..count).for_each(|index| assert!(measured.add(&size(4096), 50.0 + index as f64 / 8.0)));
    measurements
}

fn store(directory: &Path) -> Store {
    Store::new(directory, Fingerprint::named("here"))
}

fn everything() -> Stored {
    let mut measurements = samples(12);
    let gpu = Variant { arch: Arch::CUDA, cores: 2, implementation: 1 };
    let measured = measurements.variants.entry((gpu, Quantity::Energy)).or_default();
    assert!(measured.add(&SizeInfo { footprint: u32::MAX, ..SizeInfo::default() }, 0.25));
    let power = Power { a: 1.0 / 3.0, b: 1.5, c: 0.0, min: 1.0, max: 1e9, samples: 70 };
    measured.prior = Prior { linear: Some(power), sums: [1.0, 2.0, 3.0, 1.0 / 3.0], ..Prior::default() };
    Stored { symbol: "potrf".to_owned(), kind: Kind::Multiple(vec![[1, 2].into()]), measurements }
}

#[test]
fn what_is_stored_is_read_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = store(directory.path());
    assert_eq!(store.list().expect("no directory is no error"), Vec::<String>::new());
    assert_eq!(store.read("potrf").expect("no file is no error"), None);
    let Stored { symbol, kind, measurements } = everything();
    let (stored, moved) = store.add(&symbol, &kind, &measurements).expect("the directory can be written");
    assert!(moved.is_none());
    assert_eq!(stored, everything());
    assert_eq!(store.read("potrf").expect("it was just written"), Some(everything()));
    assert_eq!(store.list().expect("it is there"), ["potrf"]);
    assert!(store.remove("potrf").expect("it can be removed") && !store.remove("potrf").expect("nothing to do"));
    assert_eq!(store.list().expect("it is there"), Vec::<String>::new());
}

#[test]
fn the_text_can_be_read_by_people() {
    let mut stored = everything();
    stored.measurements = samples(2);
    let text = text::print(&stored, &Fingerprint::named("here"));
    insta::assert_snapshot!(text.trim_end(), @r#"
    {"format":"sched-model","version":1,"symbol":"potrf","kind":{"multiple":[[1,2]]},"machine":"here"}
    {"history":{"arch":"cpu","cores":1,"implementation":0,"quantity":"time","footprint":"00003000","bytes":4096,"flops":12.5,"params":[2.0,0.1],"bins":[[45,2,100.125,5012.515625]]}}
    {"end":{"lines":2,"checksum":"c173d07b"}}
    "#);
}

#[test]
fn two_processes_at_once_lose_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            // A separate model and store, as another process has.
            let store = store(directory.path());
            scope.spawn(move || {
                let model = CodeletModel::new(Model::history("gemm"), 10, Measurements::default());
                for round in 0..20 {
                    assert!(model.record(CPU, Quantity::Time, &size(8), 5.0 + f64::from(round)));
                    let fresh = model.take_fresh();
                    let (stored, _) = store.add("gemm", &Kind::History, &fresh).expect("the directory can be written");
                    model.stored(&stored.measurements);
                }
            });
        }
    });
    let stored = store(directory.path()).read("gemm").expect("it is sound").expect("it is there");
    assert_eq!(stored.measurements.samples(), 40);
    let left: Vec<_> = fs::read_dir(directory.path().join("here")).expect("it is there").flatten().collect();
    assert_eq!(left.len(), 2, "the model and the lock: {left:?}");
}

#[test]
fn a_file_cut_off_anywhere_is_damaged() {
    let text = text::print(&everything(), &Fingerprint::named("here"));
    for end in 0..text.len() {
        let error = text::parse(&text.as_bytes()[..end], Path::new("potrf.model"), "potrf").expect_err("it is cut off");
        assert!(matches!(&error, ModelError::Damaged(_)), "cut off at {end}: {error}");
    }
    assert!(text::parse(text.as_bytes(), Path::new("potrf.model"), "potrf").is_ok());
}

proptest! {
    #[test]
    fn one_wrong_byte_is_damage(at in any::<prop::sample::Index>(), with in any::<u8>()) {
        let mut bytes = text::print(&everything(), &Fingerprint::named("here")).into_bytes();
        let at = at.index(bytes.len());
        prop_assume!(bytes[at] != with);
        bytes[at] = with;
        let parsed = text::parse(&bytes, Path::new("potrf.model"), "potrf");
        // Replacing a blank by a blank changes nothing.
        prop_assert!(parsed.is_err() || parsed.is_ok_and(|stored| stored == everything()));
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(text::parse(&bytes, Path::new("potrf.model"), "potrf").is_err());
    }
}

#[test]
fn a_damaged_file_is_reported_and_kept_aside() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = store(directory.path());
    store.add("potrf", &Kind::History, &samples(3)).expect("the directory can be written");
    let path = store.path("potrf").expect("a good name");
    for round in 1..=2 {
        let sound = fs::read_to_string(&path).expect("it is there");
        let damaged = sound.replace("cpu", "cup");
        fs::write(&path, &damaged).expect("it can be written");
        let error = store.read("potrf").expect_err("it is damaged");
        assert!(error.to_string().contains("potrf.model:2:1: found architecture `cup`"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), damaged, "reading changes nothing");
        let (stored, moved) = store.add("potrf", &Kind::History, &samples(3)).expect("it can be written");
        assert_eq!(stored.measurements.samples(), 3, "it begins anew");
        let moved = moved.expect("it was in the way");
        assert!(moved.kept.ends_with(format!("potrf.model.damaged-{round}")), "{moved}");
        assert_eq!(fs::read_to_string(&moved.kept).expect("it is there"), damaged);
    }
    assert_eq!(store.list().expect("it is there"), ["potrf"]);
}

#[test]
fn a_newer_file_is_reported_and_kept_aside() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = store(directory.path());
    store.add("potrf", &Kind::History, &samples(3)).expect("the directory can be written");
    let path = store.path("potrf").expect("a good name");
    let newer = "{\"format\":\"sched-model\",\"version\":2,\"symbol\":\"potrf\",\"colour\":\"blue\"}\nwho knows\n";
    fs::write(&path, newer).expect("it can be written");
    let error = store.read("potrf").expect_err("it is newer");
    assert!(error.to_string().ends_with("version 2 of the format, and this program knows versions up to 1"), "{error}");
    let (_, moved) = store.add("potrf", &Kind::History, &samples(3)).expect("it can be written");
    let moved = moved.expect("it was in the way");
    assert!(moved.kept.ends_with("potrf.model.newer-1"));
    assert_eq!(fs::read_to_string(&moved.kept).expect("it is there"), newer);
}

#[test]
fn a_file_edited_by_hand_is_read_when_its_checksum_is_left_out() {
    let text = text::print(&everything(), &Fingerprint::named("here"));
    let (lines, end) = text.trim_end().rsplit_once('\n').expect("several lines");
    let without = format!("{lines}\n{}}}}}\n", end.split_once(",\"checksum\"").expect("it has one").0);
    let edited = without.replace("4096", "8192");
    let parsed = text::parse(edited.as_bytes(), Path::new("potrf.model"), "potrf").expect("it is sound");
    assert_eq!(parsed.measurements.variants[&KEY].entries.values().next().map(|entry| entry.bytes), Some(8192));
}

#[test]
fn a_directory_that_cannot_be_written_is_a_clear_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("file");
    fs::write(&file, "no directory").expect("it can be written");
    let error = store(&file).add("potrf", &Kind::History, &samples(3)).expect_err("a file is no directory");
    assert!(error.to_string().contains("file/here: it cannot be made: "), "{error}");
    // A directory occupies the name of the new file; the effect is that of a full disk.
    let store = store(directory.path());
    fs::create_dir_all(store.path("potrf").expect("a good name").join("full")).expect("a directory");
    let error = store.add("potrf", &Kind::History, &samples(3)).expect_err("a directory is no file");
    assert!(error.to_string().contains("potrf.model: it cannot be "), "{error}");
}

#[test]
fn names_that_could_leave_the_directory_are_refused() {
    let store = store(Path::new("/models"));
    for bad in ["", ".hidden", "../up", "a/b", "a b", &"x".repeat(300)] {
        assert!(matches!(store.path(bad), Err(ModelError::Name(_))), "{bad}");
    }
    assert_eq!(store.path("chol.gemm_3+x").expect("a good name"), Path::new("/models/here/chol.gemm_3+x.model"));
}

#[test]
fn the_directory_is_the_users_own_unless_it_is_said() {
    let with = |pairs: &[(&str, &str)]| {
        let env = |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        default_directory(env)
    };
    let home = ("HOME", "/home/me");
    assert_eq!(with(&[home]).expect("home"), Path::new("/home/me/.local/share/sched/models"));
    assert_eq!(with(&[home, ("XDG_DATA_HOME", "/data")]).expect("data"), Path::new("/data/sched/models"));
    assert_eq!(with(&[home, ("SCHED_MODEL_DIR", "/here")]).expect("here"), Path::new("/here"));
    assert_eq!(with(&[home, ("SCHED_MODEL_DIR", "")]).expect("home"), Path::new("/home/me/.local/share/sched/models"));
    assert!(matches!(with(&[]), Err(ModelError::NoDirectory)));
}

#[test]
fn drafts_of_killed_processes_are_removed_and_links_not_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = store(directory.path());
    let add = || store.add("potrf", &Kind::History, &samples(1)).map(drop);
    add().expect("it can be written");
    let left = store.directory().join("potrf.model.1-0.new");
    fs::write(&left, "half").expect("a file");
    add().expect("it can be written");
    assert!(!left.exists());
    let (lock, elsewhere) = (store.directory().join("lock"), directory.path().join("elsewhere"));
    fs::remove_file(&lock).expect("it is there");
    std::os::unix::fs::symlink(&elsewhere, &lock).expect("a link");
    assert!(add().is_err() && !elsewhere.exists());
}
