//! Values that travel between ranks.

use bytemuck::Pod;

/// A value whose bytes are its message: a number, or a `Vec` of numbers.
///
/// Ranks are of one architecture: bytes are sent as they lie in memory.
///
/// ```
/// use sched_cluster::Message;
/// let (sent, mut received) = (vec![1.5, 2.5], vec![0.0; 2]);
/// received.bytes_mut().copy_from_slice(sent.bytes());
/// assert_eq!(received, [1.5, 2.5]);
/// ```
pub trait Message: Send + Sync + 'static {
    /// The message.
    fn bytes(&self) -> &[u8];

    /// Where a message of the same length goes.
    fn bytes_mut(&mut self) -> &mut [u8];

    /// What values of the same length differ in beside their bytes, such as the number of rows of a matrix. A value may
    /// be received where another of the same type, length and shape has been.
    fn shape(&self) -> u64 {
        0
    }
}

impl<T: Pod + Send + Sync> Message for Vec<T> {
    fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(self)
    }
}

macro_rules! number {
    ($($number:ty),*) => {$(
        impl Message for $number {
            fn bytes(&self) -> &[u8] {
                bytemuck::bytes_of(self)
            }

            fn bytes_mut(&mut self) -> &mut [u8] {
                bytemuck::bytes_of_mut(self)
            }
        }
    )*};
}

number!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);
