//! The stamp: plain bytes in a plugin that describe what it was built for.
//!
//! The host reads the stamp from the file before the loader maps the library, so an incompatible plugin never executes
//! an instruction. It contains no pointers, and the positions of its first three fields never change.

use super::{ABI_MAJOR, ABI_MINOR, c, task};

/// Name of the symbol that holds the stamp.
pub const SYMBOL: &str = "SCHED_PLUGIN_STAMP";

/// First bytes of every stamp.
pub const MAGIC: [u8; 16] = *b"sched-component\0";

/// Name and version of the library that checks layouts: its own descriptions must be readable before they can be
/// compared.
pub const LAYOUT_CHECKER: &str = "abi_stable 0.11.3";

/// What a plugin was built for.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// [`MAGIC`].
    pub magic: [u8; 16],
    /// Size of the stamp in bytes; later versions append fields.
    pub size: u32,
    /// [`ABI_MAJOR`] of the interface it was built against.
    pub abi_major: u32,
    /// [`ABI_MINOR`] of the interface it was built against.
    pub abi_minor: u32,
    /// 1 when a panic unwinds, 0 when it aborts the process.
    pub panic_unwinds: u32,
    /// [`task::layout_number`]; of a plugin in C, [`c::layout_number`].
    pub task_layout: u64,
    /// Size of a task's head in bytes.
    pub task_size: u32,
    /// Width of a pointer in bits.
    pub pointer_width: u32,
    /// [`LAYOUT_CHECKER`]; of a plugin in C, [`c::LAYOUTS`].
    pub layout_checker: [u8; 32],
    /// Name of the package.
    pub package: [u8; 64],
    /// Version of the package.
    pub version: [u8; 32],
}

impl Stamp {
    /// The stamp of a plugin in this package, built against this version of the interface.
    #[must_use]
    pub const fn new(package: &str, version: &str, panic_unwinds: bool) -> Stamp {
        Stamp {
            magic: MAGIC,
            size: size_of::<Stamp>() as u32,
            abi_major: ABI_MAJOR,
            abi_minor: ABI_MINOR,
            panic_unwinds: panic_unwinds as u32,
            task_layout: task::layout_number(),
            task_size: size_of::<task::TaskHead>() as u32,
            pointer_width: usize::BITS,
            layout_checker: padded(LAYOUT_CHECKER),
            package: padded(package),
            version: padded(version),
        }
    }

    /// Reads a stamp from the bytes of its symbol.
    ///
    /// # Errors
    /// [`StampError::NotAStamp`], [`StampError::Short`], or [`StampError::Major`] for the shorter stamp of another
    /// major.
    pub fn read(bytes: &[u8]) -> Result<Stamp, StampError> {
        if bytes.get(..16) != Some(&MAGIC[..]) {
            return Err(StampError::NotAStamp);
        }
        if bytes.len() < size_of::<Stamp>() {
            // The stamp of another major may have any layout beyond its first fields.
            if let Some(Ok(major)) = bytes.get(20..24).map(<[u8; 4]>::try_from) {
                let found = u32::from_ne_bytes(major);
                if found != ABI_MAJOR {
                    return Err(StampError::Major { found, expected: ABI_MAJOR });
                }
            }
            return Err(StampError::Short { found: bytes.len(), expected: size_of::<Stamp>() });
        }
        let mut reader = Reader { bytes, at: 0 };
        Ok(Stamp {
            magic: reader.take(),
            size: u32::from_ne_bytes(reader.take()),
            abi_major: u32::from_ne_bytes(reader.take()),
            abi_minor: u32::from_ne_bytes(reader.take()),
            panic_unwinds: u32::from_ne_bytes(reader.take()),
            task_layout: u64::from_ne_bytes(reader.take()),
            task_size: u32::from_ne_bytes(reader.take()),
            pointer_width: u32::from_ne_bytes(reader.take()),
            layout_checker: reader.take(),
            package: reader.take(),
            version: reader.take(),
        })
    }

    /// Checks that a plugin with this stamp works in a host of this version.
    ///
    /// # Errors
    /// The first difference, most significant first.
    pub fn check(&self) -> Result<(), StampError> {
        if self.abi_major != ABI_MAJOR {
            return Err(StampError::Major { found: self.abi_major, expected: ABI_MAJOR });
        }
        if self.pointer_width != usize::BITS {
            return Err(StampError::PointerWidth { found: self.pointer_width, expected: usize::BITS });
        }
        if self.panic_unwinds == 0 {
            return Err(StampError::PanicAborts);
        }
        if self.is_c() {
            let same = self.task_layout == c::layout_number();
            return if same { Ok(()) } else { Err(StampError::Tables) };
        }
        if self.task_layout != task::layout_number() {
            return Err(StampError::TaskLayout { found: self.task_size, expected: size_of::<task::TaskHead>() as u32 });
        }
        if self.layout_checker != padded(LAYOUT_CHECKER) {
            return Err(StampError::LayoutChecker { found: text(&self.layout_checker), expected: LAYOUT_CHECKER });
        }
        Ok(())
    }

    /// Whether the plugin exports the tables of `msched.h`.
    #[must_use]
    pub fn is_c(&self) -> bool {
        self.layout_checker == padded(c::LAYOUTS)
    }

    /// Name and version of the package.
    #[must_use]
    pub fn package(&self) -> (String, String) {
        (text(&self.package), text(&self.version))
    }
}

/// Why a plugin's stamp is rejected. The message says what was found and what was expected; [`fix`](Self::fix) says
/// what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StampError {
    /// The symbol contains something else.
    NotAStamp,
    /// The symbol is too small.
    Short {
        /// Number of bytes found.
        found: usize,
        /// Number of bytes of a stamp.
        expected: usize,
    },
    /// Another major version of the interface.
    Major {
        /// The plugin's.
        found: u32,
        /// The host's.
        expected: u32,
    },
    /// Built for another pointer width.
    PointerWidth {
        /// The plugin's.
        found: u32,
        /// The host's.
        expected: u32,
    },
    /// Built with `panic = "abort"`.
    PanicAborts,
    /// The plugin's layout of a task differs from the host's.
    TaskLayout {
        /// Size of the plugin's task in bytes.
        found: u32,
        /// Size of the host's task in bytes.
        expected: u32,
    },
    /// The C compiler laid out the tables of `msched.h` otherwise.
    Tables,
    /// Its layout descriptions were written by another version of the layout checker.
    LayoutChecker {
        /// The plugin's.
        found: String,
        /// The host's.
        expected: &'static str,
    },
}

impl std::fmt::Display for StampError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StampError::NotAStamp => write!(f, "its `{SYMBOL}` is not a stamp of sched-core"),
            StampError::Short { found, expected } => {
                write!(f, "its stamp has {found} bytes, expected {expected} or more")
            }
            StampError::Major { found, expected } => {
                write!(f, "it was built for ABI {found}, this host has ABI {expected}")
            }
            StampError::PointerWidth { found, expected } => {
                write!(f, "it was built for {found}-bit pointers, this host has {expected}-bit ones")
            }
            StampError::PanicAborts => {
                f.write_str("it was built with panic = \"abort\", so its first panic would end this process")
            }
            StampError::TaskLayout { found, expected } if found == expected => {
                write!(f, "its task has {found} bytes like this host's, but its fields have other offsets")
            }
            StampError::TaskLayout { found, expected } => {
                write!(f, "its task has {found} bytes, this host's has {expected}")
            }
            StampError::Tables => f.write_str("its tables of functions have another layout than those of `msched.h`"),
            StampError::LayoutChecker { found, expected } => {
                write!(f, "its layouts are described by {found}, expected {expected} or {}", c::LAYOUTS)
            }
        }
    }
}

impl std::error::Error for StampError {}

impl StampError {
    /// What the plugin's owner can do.
    #[must_use]
    pub fn fix(&self) -> &'static str {
        match self {
            StampError::NotAStamp | StampError::Short { .. } => {
                "build it with `sched_core::export_components!` (in C with `MSCHED_PLUGIN`)"
            }
            StampError::Major { found, expected } if found > expected => {
                "update this host, or build the plugin against an older sched-core"
            }
            StampError::PanicAborts => "remove `panic = \"abort\"` from the profile that builds it",
            StampError::PointerWidth { .. } => "build it for this host's target",
            StampError::Tables => {
                "compile it with the `msched.h` of this host, and without options that pack structures"
            }
            StampError::Major { .. } | StampError::TaskLayout { .. } | StampError::LayoutChecker { .. } => {
                "build it again against the sched-core of this host"
            }
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&self.bytes[self.at..self.at + N]);
        self.at += N;
        out
    }
}

/// `text`, truncated or padded with zeros.
const fn padded<const N: usize>(text: &str) -> [u8; N] {
    let bytes = text.as_bytes();
    let mut out = [0; N];
    let mut index = 0;
    while index < bytes.len() && index < N {
        out[index] = bytes[index];
        index += 1;
    }
    out
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests;
