//! Footprints: the keys of a model's history.
//!
//! As in StarPU, a footprint is a CRC with the polynomial 0x1EDC6F41, most significant bit first, without reflection
//! and without a final complement, continued from a given register.

const POLYNOMIAL: u32 = 0x1EDC_6F41;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut register = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            register = if register >> 31 == 1 { register << 1 ^ POLYNOMIAL } else { register << 1 };
            bit += 1;
        }
        table[byte] = register;
        byte += 1;
    }
    table
};

/// StarPU's checksum of `bytes`, continued from `start`.
#[must_use]
pub fn crc32(bytes: &[u8], start: u32) -> u32 {
    bytes.iter().fold(start, |register, byte| register << 8 ^ TABLE[((register >> 24) as u8 ^ byte) as usize])
}

fn word(value: u32, start: u32) -> u32 {
    crc32(&value.to_le_bytes(), start)
}

/// Shape of a piece of data, with the numbers that enter its footprint. StarPU calls it the interface of a handle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DataShape {
    /// A matrix of `nx` rows and `ny` columns.
    Matrix {
        /// Number of elements in the first dimension.
        nx: u32,
        /// Number of elements in the second dimension.
        ny: u32,
    },
    /// A vector.
    Vector {
        /// Number of elements.
        nx: u32,
    },
    /// A single value.
    Variable {
        /// Size in bytes.
        elemsize: u32,
    },
}

impl DataShape {
    /// The footprint of a handle to data of this shape.
    #[must_use]
    pub fn footprint(self) -> u32 {
        let (data, interface) = match self {
            DataShape::Matrix { nx, ny } => (word(nx, ny), 0),
            DataShape::Vector { nx } => (word(nx, 0), 2),
            DataShape::Variable { elemsize } => (word(elemsize, 0), 5),
        };
        word(data, interface)
    }
}

/// The footprint of a task on data of these shapes, in the order of its codelet's buffers.
///
/// ```
/// use sched_model::{DataShape, task_footprint};
/// let tile = DataShape::Matrix { nx: 960, ny: 960 };
/// assert_eq!(task_footprint(&[tile; 3]), 0x24c8_4a50);
/// ```
#[must_use]
pub fn task_footprint(buffers: &[DataShape]) -> u32 {
    buffers.iter().fold(0, |so_far, buffer| fold_footprint(buffer.footprint(), so_far))
}

/// Continues the footprint of a task, initially 0, with that of another buffer.
#[must_use]
pub fn fold_footprint(buffer: u32, so_far: u32) -> u32 {
    word(buffer, so_far)
}

/// The footprint of a task whose model defines its own size (`size_base`).
#[must_use]
pub fn size_footprint(size: u64) -> u32 {
    crc32(&size.to_le_bytes(), 0)
}
