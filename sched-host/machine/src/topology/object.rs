//! An object of the machine: a package, a cache, a core, a memory node.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// The kind of an [`Object`].
///
/// The order is that of the usual nesting, outermost first. Machines differ, though: a memory node may contain several
/// packages or be a part of one. Rely on the tree, not on this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The whole machine; the root.
    Machine,
    /// A group of objects for which hwloc has no specific type.
    Group,
    /// A memory node: memory, and the PUs to which it is local.
    Numa,
    /// A physical processor, which occupies one socket.
    Package,
    /// A piece of silicon inside a package.
    Die,
    /// A level 5 cache.
    L5,
    /// A level 4 cache.
    L4,
    /// A level 3 cache.
    L3,
    /// A level 2 cache.
    L2,
    /// A level 1 data (or unified) cache.
    L1,
    /// A core: one or several hardware threads that share its arithmetic units.
    Core,
    /// A processing unit: one hardware thread, to which a worker is bound.
    Pu,
}

impl Level {
    /// Every level, outermost first.
    pub const ALL: [Self; 12] = [
        Self::Machine,
        Self::Group,
        Self::Numa,
        Self::Package,
        Self::Die,
        Self::L5,
        Self::L4,
        Self::L3,
        Self::L2,
        Self::L1,
        Self::Core,
        Self::Pu,
    ];

    /// The name in policies, commands and pictures: `machine`, `numa`, `l3`, `core`, `pu`, and so on.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Machine => "machine",
            Self::Group => "group",
            Self::Numa => "numa",
            Self::Package => "package",
            Self::Die => "die",
            Self::L5 => "l5",
            Self::L4 => "l4",
            Self::L3 => "l3",
            Self::L2 => "l2",
            Self::L1 => "l1",
            Self::Core => "core",
            Self::Pu => "pu",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for a name that is not a [`Level`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a topology level; did you mean `{nearest}`?")]
pub struct UnknownLevel {
    /// The name that was found.
    pub found: String,
    /// The level with the most similar name.
    pub nearest: Level,
}

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLevel> {
        let mut nearest = (f64::MIN, Self::Machine);
        for level in Self::ALL {
            if level.name() == name {
                return Ok(level);
            }
            let likeness = strsim::jaro_winkler(level.name(), name);
            if likeness > nearest.0 {
                nearest = (likeness, level);
            }
        }
        Err(UnknownLevel { found: name.to_owned(), nearest: nearest.1 })
    }
}

/// An object of the machine, with its contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Object {
    /// Its kind.
    pub level: Level,
    /// The operating system's number, if it has one. PUs and memory nodes always do; the numbers of cores and packages
    /// may have gaps, and those of cores may repeat from one package to the next.
    pub os_index: Option<u32>,
    /// Its rank among the objects of its level, from 0, in topology order (for a group, among the groups of its depth).
    pub logical_index: u32,
    /// The operating system's numbers of the PUs inside (for a memory node: of those to which it is local), ascending.
    pub pus: Vec<u32>,
    /// Bytes of a memory node's local memory, of the machine's total memory, or of a cache.
    pub memory_bytes: Option<u64>,
    /// The objects directly inside, in topology order.
    pub children: Vec<Object>,
}

impl Object {
    /// The number by which people know it: the operating system's for PUs and memory nodes (as `taskset` and `numactl`
    /// use it), the rank for all others.
    #[must_use]
    pub fn index(&self) -> u32 {
        match self.level {
            Level::Pu | Level::Numa => self.os_index.unwrap_or(self.logical_index),
            _ => self.logical_index,
        }
    }

    /// Its name, for people: `machine`, `numa 1`, `core 3`, `pu 7`.
    ///
    /// ```
    /// # use sched_machine::topology::{Level, Topology};
    /// let machine = Topology::from_synthetic("package:2 core:2 pu:1")?;
    /// assert_eq!(machine.level(Level::Core)[3].title(), "core 3");
    /// # Ok::<(), sched_machine::topology::TopologyError>(())
    /// ```
    #[must_use]
    pub fn title(&self) -> String {
        match self.level {
            Level::Machine => "machine".to_owned(),
            level => format!("{level} {}", self.index()),
        }
    }

    /// Whether PU `pu` (the operating system's number) is inside.
    #[must_use]
    pub fn contains(&self, pu: u32) -> bool {
        self.pus.binary_search(&pu).is_ok()
    }

    /// The object and everything inside, parents before children.
    pub fn walk(&self) -> impl Iterator<Item = &Object> {
        let mut waiting = vec![self];
        std::iter::from_fn(move || {
            let object = waiting.pop()?;
            waiting.extend(object.children.iter().rev());
            Some(object)
        })
    }
}
