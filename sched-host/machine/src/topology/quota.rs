//! The CPU time that control groups allow.

use super::ControlGroup;
use std::fs;
use std::path::Path;

/// The least CPU time that any enclosing control group allows this process, in thousandths of a PU; `None` without a
/// limit.
pub(super) fn of_this_process() -> Option<u64> {
    least(ControlGroup::around_this_process("cpu"))
}

fn least(groups: Vec<ControlGroup>) -> Option<u64> {
    let limit = |ControlGroup { version, folder }: ControlGroup| match version {
        1 => of_version_1(&folder),
        _ => of_version_2(&folder),
    };
    groups.into_iter().filter_map(limit).min()
}

/// Version 2: `max 100000`, or the microseconds of each period in which the group may run.
fn of_version_2(folder: &Path) -> Option<u64> {
    let text = fs::read_to_string(folder.join("cpu.max")).ok()?;
    let mut numbers = text.split_whitespace();
    thousandths(numbers.next()?, numbers.next()?)
}

/// Version 1: two files, with -1 for no limit.
fn of_version_1(folder: &Path) -> Option<u64> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    thousandths(&read("cpu.cfs_quota_us")?, &read("cpu.cfs_period_us")?)
}

fn thousandths(quota: &str, period: &str) -> Option<u64> {
    let (quota, period): (u64, u64) = (quota.trim().parse().ok()?, period.trim().parse().ok()?);
    quota.checked_mul(1000)?.checked_div(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(groups: &str, root: &Path) -> Option<u64> {
        least(ControlGroup::within(groups, root, "cpu"))
    }

    /// A control group file system with these files.
    fn mounted(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a temporary folder can be made");
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().expect("it is in a folder")).expect("folders can be made");
            fs::write(path, text).expect("files can be written");
        }
        root
    }

    #[test]
    fn the_narrowest_group_around_the_process_counts() {
        let root = mounted(&[
            ("cpu.max", "max 100000\n"),
            ("jobs/cpu.max", "150000 100000\n"),
            ("jobs/mine/cpu.max", "400000 100000\n"),
            ("jobs/others/cpu.max", "10000 100000\n"),
        ]);
        assert_eq!(within("0::/jobs/mine\n", root.path()), Some(1500));
        assert_eq!(within("0::/jobs/others\n", root.path()), Some(100));
        assert_eq!(within("0::/\n", root.path()), None);
        assert_eq!(within("0::/not/mounted/here\n", root.path()), None);
    }

    #[test]
    fn groups_of_version_1_count_too() {
        let files =
            |quota| [("cpu,cpuacct/box/cpu.cfs_quota_us", quota), ("cpu,cpuacct/box/cpu.cfs_period_us", "50000\n")];
        let groups = "5:memory:/box\n4:cpu,cpuacct:/box\n0::/\n";
        assert_eq!(within(groups, mounted(&files("100000\n")).path()), Some(2000));
        assert_eq!(within(groups, mounted(&files("-1\n")).path()), None);
    }

    #[test]
    fn what_makes_no_sense_sets_no_limit() {
        for text in ["", "max", "100000", "100000 0", "much 100000", "18446744073709551615 1"] {
            let root = mounted(&[("cpu.max", text)]);
            assert_eq!(within("0::/\n", root.path()), None, "{text:?}");
        }
        assert_eq!(within("not a list of groups", Path::new("/nowhere")), None);
    }
}
