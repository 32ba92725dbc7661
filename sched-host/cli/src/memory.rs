//! Memory that this process may still take, by all limits that are set for it.

use sched_machine::topology::ControlGroup;
use std::path::Path;

/// What is left of a limit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Left {
    pub(super) bytes: u64,
    pub(super) of: Limit,
}

/// Who sets a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Limit {
    /// The memory of the machine.
    Machine,
    /// The control group, as containers and batch systems set it.
    Group,
    /// `ulimit -v` or `-d`.
    Process,
}

impl Limit {
    /// Whether other processes share it.
    pub(super) fn is_shared(self) -> bool {
        self != Limit::Process
    }

    /// In words, behind an amount.
    pub(super) fn said(self) -> &'static str {
        match self {
            Limit::Machine => "of memory are available",
            Limit::Group => "of memory are left to the control group",
            Limit::Process => "are left to the process (`ulimit -v`, `ulimit -d`)",
        }
    }
}

/// What is left of each limit that is known. (hwloc reports the installed memory, and in some virtual machines half of
/// it.)
pub(super) fn limits() -> Vec<Left> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    limits_by(read, &ControlGroup::around_this_process("memory"))
}

fn limits_by(read: impl Fn(&Path) -> Option<String>, groups: &[ControlGroup]) -> Vec<Left> {
    let left = |bytes: Option<u64>, of| bytes.map(|bytes| Left { bytes, of });
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| kib(&text, "MemAvailable:"));
    let group = groups.iter().filter_map(|group| left_to(group, &read)).min();
    [left(machine, Limit::Machine), left(group, Limit::Group), left(process(&read), Limit::Process)]
        .into_iter()
        .flatten()
        .collect()
}

/// A number of KiB behind a word at the begin of a line, in bytes.
fn kib(text: &str, word: &str) -> Option<u64> {
    let number = text.lines().find_map(|line| line.strip_prefix(word))?.trim().strip_suffix("kB")?;
    number.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// What the resource limits of the process leave.
fn process(read: &impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let (limits, status) = (read(Path::new("/proc/self/limits"))?, read(Path::new("/proc/self/status"))?);
    let soft = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let left = |limit: &str, used: &str| Some(soft(limit)?.saturating_sub(kib(&status, used)?));
    [left("Max address space", "VmSize:"), left("Max data size", "VmData:")].into_iter().flatten().min()
}

/// What a control group leaves. Files in memory that nobody uses give way.
fn left_to(group: &ControlGroup, read: &impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let (used, most, files) = match group.version {
        1 => ("memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file "),
        _ => ("memory.current", "memory.max", "inactive_file "),
    };
    let number = |file: &str| read(&group.folder.join(file))?.trim().parse::<u64>().ok();
    let files = read(&group.folder.join("memory.stat")).and_then(|stat| field(&stat, files)).unwrap_or(0);
    let used = number(used)?.saturating_sub(files);
    Some(number(most)?.saturating_sub(used))
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<(u64, Limit)> {
        let read =
            |path: &Path| files.iter().find(|(known, _)| Path::new(known) == path).map(|(_, text)| (*text).to_owned());
        let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
        let groups = ControlGroup::within(&groups, Path::new("/sys/fs/cgroup"), "memory");
        limits_by(read, &groups).iter().map(|left| (left.bytes, left.of)).collect()
    }

    const STATUS: (&str, &str) = ("/proc/self/status", "Name: sched\nVmSize:\t 100 kB\nVmData:\t 40 kB\n");

    #[test]
    fn each_limit_is_found() {
        assert_eq!(of(&[]), []);
        assert_eq!(of(&[("/proc/meminfo", "MemTotal: 9 kB\nMemAvailable:   7 kB\n")]), [(7168, Limit::Machine)]);
        let unlimited = "Max data size  unlimited  unlimited  bytes\nMax address space  unlimited unlimited bytes\n";
        assert_eq!(of(&[("/proc/self/limits", unlimited), STATUS]), []);
        let limits = "Max data size  500000  unlimited  bytes\nMax address space  402400 unlimited bytes\n";
        assert_eq!(of(&[("/proc/self/limits", limits), STATUS]), [(300_000, Limit::Process)]);
    }

    #[test]
    fn groups_above_count_and_files_in_memory_do_not() {
        let group = ("/proc/self/cgroup", "0::/a/b\n");
        let files = [
            group,
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/b/memory.current", "10\n"),
            ("/sys/fs/cgroup/a/memory.max", "1000\n"),
            ("/sys/fs/cgroup/a/memory.current", "400\n"),
            ("/sys/fs/cgroup/a/memory.stat", "anon 300\ninactive_file 100\n"),
        ];
        assert_eq!(of(&files), [(700, Limit::Group)]);
        let files = [
            ("/proc/self/cgroup", "5:devices:/\n4:memory,hugetlb:/a\n0::/\n"),
            ("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n"),
            ("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "400\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/memory.usage_in_bytes", "700\n"),
        ];
        assert_eq!(of(&files), [(600, Limit::Group)]);
    }
}
