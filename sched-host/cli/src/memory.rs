//! Memory that this process may still take, by all limits that are set for it.

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
    limits_by(|path| std::fs::read_to_string(path).ok())
}

fn limits_by(read: impl Fn(&str) -> Option<String>) -> Vec<Left> {
    let left = |bytes: Option<u64>, of| bytes.map(|bytes| Left { bytes, of });
    let machine = read("/proc/meminfo").and_then(|text| kib(&text, "MemAvailable:"));
    let group = [group_v2(&read), group_v1(&read)].into_iter().flatten().min();
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
fn process(read: &impl Fn(&str) -> Option<String>) -> Option<u64> {
    let (limits, status) = (read("/proc/self/limits")?, read("/proc/self/status")?);
    let soft = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let left = |limit: &str, used: &str| Some(soft(limit)?.saturating_sub(kib(&status, used)?));
    [left("Max address space", "VmSize:"), left("Max data size", "VmData:")].into_iter().flatten().min()
}

/// What the control group of the process and those above it leave, in version 2.
fn group_v2(read: &impl Fn(&str) -> Option<String>) -> Option<u64> {
    let groups = read("/proc/self/cgroup")?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let number = |folder: &str, file: &str| read(&format!("{folder}/{file}"))?.trim().parse::<u64>().ok();
    let left = |folder: String| {
        let cache = read(&format!("{folder}/memory.stat")).and_then(|stat| field(&stat, "inactive_file "));
        // Files that nobody uses give way.
        let used = number(&folder, "memory.current")?.saturating_sub(cache.unwrap_or(0));
        Some(number(&folder, "memory.max")?.saturating_sub(used))
    };
    folders("/sys/fs/cgroup", path).filter_map(left).min()
}

/// The same in version 1.
fn group_v1(read: &impl Fn(&str) -> Option<String>) -> Option<u64> {
    let groups = read("/proc/self/cgroup")?;
    let of_memory = |line: &str| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == "memory").then(|| path.to_owned())
    };
    let path = groups.lines().find_map(of_memory)?;
    let number = |folder: &str, file: &str| read(&format!("{folder}/{file}"))?.trim().parse::<u64>().ok();
    let left = |folder: String| {
        let cache = read(&format!("{folder}/memory.stat")).and_then(|stat| field(&stat, "total_inactive_file "));
        let used = number(&folder, "memory.usage_in_bytes")?.saturating_sub(cache.unwrap_or(0));
        Some(number(&folder, "memory.limit_in_bytes")?.saturating_sub(used))
    };
    folders("/sys/fs/cgroup/memory", &path).filter_map(left).min()
}

/// The folder of a group, and those above it.
fn folders(root: &'static str, path: &str) -> impl Iterator<Item = String> {
    let above = Path::new(path).ancestors().map(|above| format!("{root}{}", above.display()));
    above.map(|folder| folder.trim_end_matches('/').to_owned()).collect::<Vec<_>>().into_iter()
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Vec<(u64, Limit)> {
        let read = |path: &str| files.iter().find(|(known, _)| *known == path).map(|(_, text)| (*text).to_owned());
        limits_by(read).iter().map(|left| (left.bytes, left.of)).collect()
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
