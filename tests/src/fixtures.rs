//! Plugins and hosts built for the tests, once for each process and only if out of date.
//!
//! The fixtures have a workspace of their own, `tests/fixtures`, with a target folder of its own. Tests that need a
//! valid plugin use those of the main workspace.

use serde_json::Value;
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Build profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// `cargo build`.
    Debug,
    /// `cargo build --release`.
    Release,
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Profile::Debug => "dev",
            Profile::Release => "release",
        }
    }
}

/// Files built by cargo, by package name.
type Built = BTreeMap<String, PathBuf>;

/// The library of a package of the fixtures.
///
/// # Panics
/// If it cannot be built, or there is no such package.
#[must_use]
pub fn plugin(package: &str) -> PathBuf {
    static BUILT: OnceLock<Built> = OnceLock::new();
    let built = BUILT.get_or_init(|| fixtures(&["--workspace", "--exclude", "abort", "--profile", "dev"]));
    find(built, package)
}

/// The library of the package `abort`, built with `panic = "abort"`.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn aborting_plugin() -> PathBuf {
    static BUILT: OnceLock<Built> = OnceLock::new();
    find(BUILT.get_or_init(|| fixtures(&["-p", "abort", "--profile", "abort"])), "abort")
}

/// The program `old-host`, a host of interface 1.0.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn old_host(profile: Profile) -> PathBuf {
    static BUILT: [OnceLock<Built>; 2] = [const { OnceLock::new() }; 2];
    find(BUILT[profile as usize].get_or_init(|| fixtures(&["-p", "old-host", "--profile", profile.name()])), "old-host")
}

/// The library of a plugin of the main workspace, such as `sched-plugin-example-lifo`.
///
/// # Panics
/// If it cannot be built, or there is no such package.
#[must_use]
pub fn stock_plugin(package: &str, profile: Profile) -> PathBuf {
    static RELEASE: OnceLock<Built> = OnceLock::new();
    match profile {
        Profile::Debug => find(stock(), package),
        Profile::Release => {
            let options = ["-p", "sched-plugin-example-lifo", "--profile", profile.name()];
            let folder = target_folder().join("fixtures");
            find(RELEASE.get_or_init(|| cargo_build(&repository().join("Cargo.toml"), &folder, &options)), package)
        }
    }
}

/// The program `sched`, with the stock plugins beside it.
///
/// # Panics
/// If it cannot be built.
#[must_use]
pub fn program() -> PathBuf {
    find(stock(), "sched-cli")
}

/// What `cargo run` builds: the program and the plugins, at once, so that they share what they depend on.
fn stock() -> &'static Built {
    static BUILT: OnceLock<Built> = OnceLock::new();
    BUILT.get_or_init(|| cargo_build(&repository().join("Cargo.toml"), &target_folder(), &["--profile", "dev"]))
}

fn fixtures(options: &[&str]) -> Built {
    cargo_build(&repository().join("tests/fixtures/Cargo.toml"), &target_folder().join("fixtures"), options)
}

fn find(built: &Built, package: &str) -> PathBuf {
    let path = built.get(package);
    path.unwrap_or_else(|| panic!("no `{package}` was built, only {:?}", built.keys())).clone()
}

/// The folder of the workspace.
#[must_use]
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests lie in the repository")
}

/// Where this test was built.
#[must_use]
pub fn target_folder() -> PathBuf {
    let executable = env::current_exe().expect("the system knows the running executable");
    let tagged = executable.ancestors().find(|folder| folder.join("CACHEDIR.TAG").exists());
    tagged.map_or_else(|| repository().join("target"), Path::to_owned)
}

fn cargo_build(manifest: &Path, target: &Path, options: &[&str]) -> Built {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let mut command = Command::new(cargo);
    command.arg("build").arg("--manifest-path").arg(manifest).arg("--target-dir").arg(target).args(options);
    command.args(["--message-format", "json-render-diagnostics"]).stdin(Stdio::null());
    // What a release build is to the tests: no debug assertions, other layouts. Its speed would cost a minute.
    command.envs([("CARGO_PROFILE_RELEASE_LTO", "off"), ("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1")]);
    let output = command.output().unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} fails:\n{errors}");
    String::from_utf8_lossy(&output.stdout).lines().filter_map(artifact).collect()
}

/// Package and file from a cargo message about a plugin or program.
fn artifact(line: &str) -> Option<(String, PathBuf)> {
    let message: Value = serde_json::from_str(line).ok()?;
    let target = message.get("target")?;
    let kind = target.get("kind")?.get(0)?.as_str()?;
    if !matches!(kind, "cdylib" | "bin") {
        return None;
    }
    // Cargo omits the name in an id if it equals that of the folder.
    let id = message.get("package_id")?.as_str()?;
    let package = id.rsplit_once('#')?.1.split('@').next()?;
    let package = if package.starts_with(|first: char| first.is_ascii_digit()) {
        id.rsplit_once('#')?.0.rsplit('/').next()?
    } else {
        package
    };
    let file = message.get("filenames")?.as_array()?.iter().filter_map(Value::as_str).find(|name| is_wanted(name))?;
    Some((package.to_owned(), file.into()))
}

/// Neither debug symbols nor import libraries.
fn is_wanted(name: &str) -> bool {
    Path::new(name).extension().is_none_or(|extension| extension == env::consts::DLL_EXTENSION)
}
