//! The control groups around this process, as containers and batch systems set them.

use std::fs;
use std::path::{Path, PathBuf};

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// The folder of a control group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControlGroup {
    /// Version 2 has one hierarchy for all controllers; in version 1 each has its own, with other files.
    pub version: u8,
    /// Where its files are, if it is mounted.
    pub folder: PathBuf,
}

impl ControlGroup {
    /// The groups around this process that a controller, such as `cpu` or `memory`, may limit: its own, and those
    /// above.
    #[must_use]
    pub fn around_this_process(controller: &str) -> Vec<ControlGroup> {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        ControlGroup::within(&groups, Path::new(MOUNT), controller)
    }

    /// As [`around_this_process`](Self::around_this_process), for a process whose `/proc/PID/cgroup` has this text,
    /// with control groups mounted at `root`.
    #[must_use]
    pub fn within(groups: &str, root: &Path, controller: &str) -> Vec<ControlGroup> {
        let mut found = Vec::new();
        for line in groups.lines() {
            let Some((controllers, path)) = line.split_once(':').and_then(|(_, group)| group.split_once(':')) else {
                continue;
            };
            let (version, mounts) = match controllers {
                "" => (2, [root.to_owned(), root.join("unified")]),
                _ if controllers.split(',').any(|name| name == controller) => {
                    (1, [root.join(controllers), root.join(controller)])
                }
                _ => continue,
            };
            // In a container the path may be the host's, while the container's own group is mounted.
            let path = path.trim_start_matches('/');
            for mount in mounts {
                let innermost = mount.join(path);
                let above = innermost.ancestors().take_while(|folder| folder.starts_with(&mount));
                found.extend(above.map(|folder| ControlGroup { version, folder: folder.to_owned() }));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(groups: &str, controller: &str) -> Vec<(u8, String)> {
        let found = ControlGroup::within(groups, Path::new("/groups"), controller);
        found.into_iter().map(|group| (group.version, group.folder.display().to_string())).collect()
    }

    #[test]
    fn groups_and_those_above_are_found_in_both_versions() {
        let folders = |version, names: &[&str]| -> Vec<(u8, String)> {
            names.iter().map(|name| (version, (*name).to_owned())).collect()
        };
        let second =
            ["/groups/a/b", "/groups/a", "/groups", "/groups/unified/a/b", "/groups/unified/a", "/groups/unified"];
        assert_eq!(of("0::/a/b\n", "memory"), folders(2, &second));
        let first = ["/groups/memory,hugetlb/a", "/groups/memory,hugetlb", "/groups/memory/a", "/groups/memory"];
        assert_eq!(of("5:devices:/\n4:memory,hugetlb:/a\n", "memory"), folders(1, &first));
        assert_eq!(of("5:devices:/\n4:memory,hugetlb:/a\nnot a group\n", "cpu"), []);
    }
}
