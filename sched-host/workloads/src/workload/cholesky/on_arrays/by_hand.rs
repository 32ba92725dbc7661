//! The factorisation as a program would write it for one queue of one device: what a runtime is compared with.

use super::{BLOCK, KERNELS, ROWS, Sizes, group, on_core};
use crate::linalg::{CholeskyStep, LowerTiles, Precision, Tile, TileMut, cholesky_steps, flops};
use sched_core::Arch;
use sched_core::abi::driver::OpenedDriver;
use sched_core::driver::{
    Arg, BufferId, DeviceMemory, DeviceNumber, DriverError, DriverErrorKind, KernelId, Launch, Order, Source, Token,
};
use std::time::Instant;

/// Everything is in the queue for kernels.
const ORDER: Order<'static> = Order { queue: 0, after: &[] };

/// A device with compiled kernels.
pub(crate) struct ByHand<'a> {
    driver: &'a OpenedDriver,
    device: DeviceNumber,
    trsm: KernelId,
    syrk: KernelId,
    gemm: KernelId,
}

impl<'a> ByHand<'a> {
    pub(crate) fn new(driver: &'a OpenedDriver, device: DeviceNumber, arch: Arch) -> Result<ByHand<'a>, DriverError> {
        let (text, options) = match arch {
            Arch::CUDA => KERNELS.cuda(Precision::Double),
            _ => KERNELS.opencl(Precision::Double),
        };
        let module = driver.load(device, Source::Text { text: &text, options })?;
        let kernel = |name| driver.kernel(device, module, name);
        Ok(ByHand { driver, device, trsm: kernel("trsm")?, syrk: kernel("syrk")?, gemm: kernel("gemm")? })
    }

    /// Factorises a matrix; returns the speed in GFlop/s from the first copy to the end of the last kernel. Pivots are
    /// computed by the host, as in the runtime.
    pub(crate) fn run(&self, matrix: LowerTiles) -> Result<(f64, LowerTiles), DriverError> {
        let tiling = matrix.tiling();
        let mut tiles: Vec<Vec<f64>> = matrix.into_tiles().into_iter().map(Tile::into_values).collect();
        let buffers = tiles.iter().map(|tile| self.driver.allocate(self.device, size_of_val(&**tile) as u64));
        let buffers = buffers.collect::<Result<Vec<BufferId>, DriverError>>()?;
        let began = Instant::now();
        for (tile, buffer) in tiles.iter().zip(&buffers) {
            self.driver.write(bytemuck::cast_slice(tile), self.memory(*buffer), ORDER)?;
        }
        let mut launched: Vec<Token> = Vec::new();
        for step in cholesky_steps(tiling.n_tiles()) {
            let index = |(i, j)| tiling.lower_index(i, j);
            let (written, sizes) = (index(step.writes()), Sizes::of(tiling, step));
            if let CholeskyStep::Potrf { .. } = step {
                self.wait(&mut launched)?;
                let tile = &mut tiles[written];
                self.driver.read(self.memory(buffers[written]), bytemuck::cast_slice_mut(tile), ORDER)?;
                on_core::potrf(TileMut::new(sizes.n, sizes.n, tile))
                    .map_err(|error| DriverError::new(DriverErrorKind::Other, format!("{error:?}")))?;
                self.driver.write(bytemuck::cast_slice(tile), self.memory(buffers[written]), ORDER)?;
            } else {
                let read = match step {
                    CholeskyStep::Trsm { k, .. } => vec![(k, k)],
                    CholeskyStep::Syrk { k, i } => vec![(i, k)],
                    CholeskyStep::Gemm { k, i, j } => vec![(i, k), (j, k)],
                    CholeskyStep::Potrf { .. } => Vec::new(),
                };
                let read: Vec<BufferId> = read.into_iter().map(|place| buffers[index(place)]).collect();
                launched.push(self.launch(step, sizes, &read, buffers[written])?);
            }
        }
        self.wait(&mut launched)?;
        let gflops = flops::cholesky(tiling.order()) / began.elapsed().as_secs_f64() / 1e9;
        let mut factors = Vec::with_capacity(tiles.len());
        for ((mut tile, buffer), (i, j)) in tiles.into_iter().zip(buffers).zip(tiling.lower_tiles()) {
            self.driver.read(self.memory(buffer), bytemuck::cast_slice_mut(&mut tile), ORDER)?;
            self.driver.free(self.device, buffer)?;
            factors.push(Tile::from_values(tiling.size(i), tiling.size(j), &tile));
        }
        Ok((gflops, LowerTiles::from_tiles(tiling, factors)))
    }

    fn memory(&self, buffer: BufferId) -> DeviceMemory {
        DeviceMemory { device: self.device, buffer, offset: 0, pitch: 0 }
    }

    fn wait(&self, launched: &mut Vec<Token>) -> Result<(), DriverError> {
        launched.drain(..).try_for_each(|token| self.driver.wait(self.device, token).map(|_| ()))
    }

    fn launch(
        &self,
        step: CholeskyStep,
        Sizes { m, n, k }: Sizes,
        read: &[BufferId],
        written: BufferId,
    ) -> Result<Token, DriverError> {
        let blocks = |length: usize, block: usize| length.div_ceil(block).max(1) as u64;
        let grouped = |rows: usize| {
            let group = group(rows) as u64;
            ([blocks(rows, BLOCK.0).next_multiple_of(group), blocks(n, BLOCK.1), 1], [group, 1, 1])
        };
        // Rows of each tile that is read.
        let (kernel, rows, (items, group), numbers) = match step {
            CholeskyStep::Trsm { .. } => (self.trsm, [n, 0], ([blocks(m, ROWS), 1, 1], [0; 3]), vec![m, n]),
            CholeskyStep::Syrk { .. } => (self.syrk, [n, 0], grouped(n), vec![n, k]),
            _ => (self.gemm, [m, n], grouped(m), vec![m, n, k]),
        };
        let tile = |(buffer, rows): (BufferId, usize)| [Arg::Buffer(buffer), 0u32.into(), (rows as u32).into()];
        let tiles = read.iter().copied().zip(rows).chain([(written, m)]).flat_map(tile);
        let args: Vec<Arg> = tiles.chain(numbers.into_iter().map(|number| Arg::from(number as u32))).collect();
        self.driver.launch(self.device, Launch { kernel, items, group, args: &args }, ORDER)
    }
}
