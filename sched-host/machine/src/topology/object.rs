//! One thing of the machine: a package, a cache, a core, a memory node.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

/// What an [`Object`] is.
///
/// The order is that of the usual nesting, outermost first. Machines differ, though: a memory node may
/// enclose several packages or be a part of one. Ask the tree, not the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The whole machine; the root.
    Machine,
    /// Objects that the machine puts together for a reason without a name of its own.
    Group,
    /// A memory node: memory, and the PUs to which it is local.
    Numa,
    /// A physical processor, what fits one socket.
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
    /// A processing unit: one hardware thread, what a worker is bound to.
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

    /// The name that policies, commands and pictures use: `machine`, `numa`, `l3`, `core`, `pu`…
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

/// A name that is no [`Level`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not a topology level; did you mean `{nearest}`?")]
pub struct UnknownLevel {
    /// The name that was found.
    pub found: String,
    /// The level whose name is most like it.
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

/// One object of the machine, with what it contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Object {
    /// What it is.
    pub level: Level,
    /// The operating system's number for it, where it has one. PUs and memory nodes always do; for cores
    /// and packages it may have gaps and, for cores, repeat from one package to the next.
    pub os_index: Option<u32>,
    /// Its rank among the objects of its level, from 0, in topology order (for a group, among the groups of
    /// its depth).
    pub logical_index: u32,
    /// The operating system's numbers of the PUs inside (for a memory node: of those to which it is local),
    /// ascending.
    pub pus: Vec<u32>,
    /// Bytes: the local memory of a memory node, the total of the machine, the capacity of a cache.
    pub memory_bytes: Option<u64>,
    /// What it directly contains, in topology order.
    pub children: Vec<Object>,
}

impl Object {
    /// The number by which people know it: the operating system's for PUs and memory nodes (what `taskset`
    /// and `numactl` take), the rank for all else.
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

    /// The object and everything inside, each before what it contains.
    pub fn walk(&self) -> impl Iterator<Item = &Object> {
        let mut waiting = vec![self];
        std::iter::from_fn(move || {
            let object = waiting.pop()?;
            waiting.extend(object.children.iter().rev());
            Some(object)
        })
    }
}
