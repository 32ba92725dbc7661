use super::*;
use std::sync::atomic::AtomicUsize;

const KEY: &[&str] = &["kernel", "-O2", "driver 1"];

/// A cache in a folder of its own, which ends with it.
struct Scene(PathBuf);

impl Scene {
    fn new() -> Scene {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("sched-kernel-cache-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed));
        Scene(std::env::temp_dir().join(name))
    }

    fn cache(&self) -> KernelCache {
        KernelCache { folder: Some(self.0.clone()) }
    }

    /// What there is for a key: `content`, if it has to be compiled.
    fn ask(&self, key: &[&str], content: &str) -> String {
        let load = |binary: &[u8]| Ok::<String, String>(String::from_utf8_lossy(binary).into_owned());
        let compile = || Ok((content.to_owned(), content.as_bytes().to_vec()));
        self.cache().obtain(key, load, compile).expect("it compiles")
    }

    fn files(&self) -> Vec<PathBuf> {
        fs::read_dir(&self.0).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn what_was_compiled_is_not_compiled_again_for_the_same_key_only() {
    let scene = Scene::new();
    assert_eq!(scene.ask(KEY, "first"), "first");
    assert_eq!(scene.ask(KEY, "second"), "first");
    let others: [&[&str]; 3] = [&["kernel", "-O2", "driver 2"], &["kernel-O2", "", "driver 1"], &["kernel", "-O2"]];
    for (other, content) in others.into_iter().zip(["a", "b", "c"]) {
        assert_eq!([scene.ask(other, content), scene.ask(other, "no")], [content, content]);
    }
    assert_eq!((scene.ask(KEY, "third"), scene.files().len()), ("first".to_owned(), 4));
}

#[test]
fn damaged_files_and_those_of_other_keys_are_replaced() {
    let scene = Scene::new();
    scene.ask(KEY, "first");
    let path = scene.files().remove(0);
    let whole = fs::read(&path).expect("it is there");
    let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|length| whole[..length].to_vec()).collect();
    damaged.extend((0..whole.len()).map(|at| {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        flipped
    }));
    let other = head(&["kernel", "-O3", "driver 1"]);
    write(&path, other, b"first").expect("it can be written");
    damaged.push(fs::read(&path).expect("it is there"));
    for bytes in damaged {
        fs::write(&path, &bytes).expect("it can be written");
        assert_eq!(scene.ask(KEY, "again"), "again", "{bytes:?}");
        assert_eq!(scene.ask(KEY, "no"), "again");
    }
}

#[test]
fn a_binary_that_is_refused_is_replaced() {
    let scene = Scene::new();
    scene.ask(KEY, "old");
    let compile = || Ok(("new", b"new".to_vec()));
    assert_eq!(scene.cache().obtain(KEY, |_| Err("refused"), compile), Ok("new"));
    assert_eq!(scene.ask(KEY, "no"), "new");
    // What does not compile leaves nothing.
    assert_eq!(scene.cache().obtain::<(), _>(&["wrong"], |_| Err("refused"), || Err("wrong")), Err("wrong"));
    assert_eq!(scene.files().len(), 1);
}

#[test]
fn what_may_depend_on_other_files_is_compiled_each_time() {
    let scene = Scene::new();
    for key in [&["# include <a.h>", ""], &["kernel", "-include a.h"]] {
        assert_eq!([scene.ask(key, "first"), scene.ask(key, "second")], ["first", "second"]);
    }
    assert_eq!(scene.ask(KEY, ""), "");
    assert_eq!(scene.files().len(), 0, "an empty binary is none");
    assert_eq!([scene.ask(&["// bounds included"], "first"), scene.ask(&["// bounds included"], "no")], ["first"; 2]);
}

#[test]
fn without_a_folder_everything_is_compiled() {
    let scene = Scene::new();
    fs::write(&scene.0, b"a file").expect("it can be written");
    assert_eq!([scene.ask(KEY, "first"), scene.ask(KEY, "second")], ["first", "second"]);
    fs::remove_file(&scene.0).expect("it is there");
    let compile = || Ok::<_, String>((1, b"1".to_vec()));
    assert_eq!(KernelCache::none().obtain(KEY, |_| Ok(2), compile), Ok(1));
}

#[test]
fn of_several_writers_one_stays_and_readers_see_whole_files() {
    let scene = Scene::new();
    let contents = ["a".repeat(100_000), "b".repeat(200_000)];
    std::thread::scope(|scope| {
        for content in &contents {
            scope.spawn(|| {
                for _ in 0..50 {
                    let compile = || Ok::<_, String>((content.clone(), content.as_bytes().to_vec()));
                    // Refusing what is there makes both write each time.
                    scene.cache().obtain(KEY, |_| Err(String::new()), compile).expect("it compiles");
                    assert!(contents.contains(&scene.ask(KEY, "damaged")));
                }
            });
        }
    });
    assert!(contents.contains(&scene.ask(KEY, "damaged")));
    assert_eq!(scene.files().len(), 1, "no draft is left");
}

#[test]
fn too_many_files_are_forgotten_and_no_others() {
    let scene = Scene::new();
    fs::create_dir_all(&scene.0).expect("it can be made");
    fs::write(scene.0.join("mine.txt"), b"mine").expect("it can be written");
    (0..MOST).for_each(|number| fs::write(scene.0.join(format!("{number}.kernel")), b"").expect("it can be written"));
    scene.ask(KEY, "first");
    assert_eq!(scene.files().len(), 2);
    assert!(scene.0.join("mine.txt").exists());
}

#[test]
fn the_folder_is_chosen_by_the_environment() {
    let with = |variables: &[(&str, &str)]| {
        KernelCache::of(|name| variables.iter().find(|(of, _)| *of == name).map(|(_, value)| value.into())).folder
    };
    let home = ("HOME", "/home/a");
    assert_eq!(with(&[]), None);
    assert_eq!(with(&[home]), Some("/home/a/.cache/sched/kernels".into()));
    assert_eq!(with(&[home, ("XDG_CACHE_HOME", "/cache")]), Some("/cache/sched/kernels".into()));
    assert_eq!(with(&[home, ("SCHED_KERNEL_CACHE", "/here")]), Some("/here".into()));
    assert_eq!(with(&[home, ("SCHED_KERNEL_CACHE", "")]), Some("/home/a/.cache/sched/kernels".into()));
    assert_eq!(with(&[home, ("SCHED_KERNEL_CACHE", "none")]), None);
}
