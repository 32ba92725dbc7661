//! Memory of copies that nobody needs any more, into which others are received.
//!
//! The first use of memory that the system gives costs as much as a copy: it clears a page and maps it for each 4 KiB.
//! Copies of equal length and shape can take each other's place, so what a [flush](crate::Cluster::flush) drops is kept
//! for the next one that is received.

use crate::message::Message;
use parking_lot::Mutex;
use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of bytes that are kept of one type.
const MOST: usize = 64 << 20;

/// Minimum number of bytes of a value that is kept.
const LEAST: usize = 4096;

/// Values of one type that are kept.
pub(crate) struct Pool<T>(Mutex<Kept<T>>);

struct Kept<T> {
    /// By length and shape.
    values: HashMap<(usize, u64), Vec<T>>,
    bytes: usize,
}

impl<T> Default for Kept<T> {
    fn default() -> Kept<T> {
        Kept { values: HashMap::new(), bytes: 0 }
    }
}

impl<T: Message> Pool<T> {
    /// A value of this length and shape, with anything in it.
    pub(crate) fn take(&self, len: usize, shape: u64) -> Option<T> {
        let kept = &mut *self.0.lock();
        let value = kept.values.get_mut(&(len, shape))?.pop()?;
        kept.bytes -= len;
        Some(value)
    }

    /// Gives the memory of all values back.
    pub(crate) fn clear(&self) {
        *self.0.lock() = Kept::default();
    }

    /// Keeps a value, if it is worth it and there is room.
    pub(crate) fn put(&self, value: T) {
        let (len, shape) = (value.bytes().len(), value.shape());
        let mut kept = self.0.lock();
        if len >= LEAST && kept.bytes + len <= MOST {
            kept.bytes += len;
            kept.values.entry((len, shape)).or_default().push(value);
        }
    }
}

/// A pool for each type.
#[derive(Default)]
pub(crate) struct Pools(HashMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Pools {
    /// The pool of a type.
    pub(crate) fn of<T: Message>(&mut self) -> Arc<Pool<T>> {
        let new = || Arc::new(Pool::<T>(Mutex::default())) as Arc<dyn Any + Send + Sync>;
        let pool = self.0.entry(TypeId::of::<T>()).or_insert_with(new);
        Arc::clone(pool).downcast().expect("it is the pool of this type")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in rows.
    struct Rows {
        rows: u64,
        numbers: Vec<u64>,
    }

    impl Message for Rows {
        fn bytes(&self) -> &[u8] {
            self.numbers.bytes()
        }

        fn bytes_mut(&mut self) -> &mut [u8] {
            self.numbers.bytes_mut()
        }

        fn shape(&self) -> u64 {
            self.rows
        }
    }

    #[test]
    fn a_value_comes_back_for_one_of_its_length_and_shape() {
        let mut pools = Pools::default();
        let pool = pools.of::<Rows>();
        pool.put(Rows { rows: 8, numbers: vec![7; 512] });
        pool.put(Rows { rows: 8, numbers: vec![7; 511] });
        assert!(
            pool.take(4096, 4).is_none() && pool.take(4088, 8).is_none(),
            "of another shape, and too small to keep"
        );
        let found = pools.of::<Rows>().take(4096, 8).expect("it was kept");
        assert_eq!((found.rows, found.numbers.len()), (8, 512));
        assert!(pool.take(4096, 8).is_none());
        // A type has a pool of its own.
        pool.put(found);
        assert!(pools.of::<Vec<u64>>().take(4096, 8).is_none());
    }

    #[test]
    fn not_more_is_kept_than_there_is_room() {
        let pool = Pools::default().of::<Vec<u8>>();
        for _ in 0..3 {
            pool.put(vec![0; MOST / 2]);
        }
        let found = std::iter::from_fn(|| pool.take(MOST / 2, 0));
        assert_eq!(found.count(), 2);
    }
}
