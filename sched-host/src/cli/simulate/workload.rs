//! The graph to simulate.

use crate::cli::values::{positive, seconds};
use crate::graph::{self, TaskGraph, generate};
use std::path::Path;
use std::time::Duration;

/// Which graph.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Options {
    /// cholesky, lu, qr, stencil, fork-join, layered or independent; or the path of a graph file
    #[arg(value_name = "WORKLOAD")]
    pub(super) workload: String,

    /// Tiles in a row of tiles (cholesky, lu, qr)
    #[arg(long, short = 'n', value_name = "N", default_value_t = 16, value_parser = positive, help_heading = "Graph")]
    pub(super) tiles: usize,

    /// Rows of a tile (cholesky, lu, qr)
    #[arg(long, short = 'b', value_name = "B", default_value_t = 960, value_parser = positive, help_heading = "Graph")]
    pub(super) tile_size: usize,

    /// Tasks side by side (stencil, fork-join, layered), or all of them (independent)
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = positive, help_heading = "Graph")]
    width: usize,

    /// Steps, phases or layers, one after the other (stencil, fork-join, layered)
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = positive, help_heading = "Graph")]
    steps: usize,

    /// Length of a task (stencil, fork-join, independent), or the mean length (layered), in seconds
    #[arg(long, value_name = "SECONDS", default_value = "0.001", value_parser = seconds, help_heading = "Graph")]
    length: Duration,

    /// Bytes that a task hands on (stencil, fork-join, layered)
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20, help_heading = "Graph")]
    bytes: u64,

    /// How likely a task waits for a given one of the layer before, from 0 to 1 (layered)
    #[arg(long, value_name = "P", default_value_t = 0.1, help_heading = "Graph")]
    density: f64,
}

const GENERATED: [&str; 7] = ["cholesky", "lu", "qr", "stencil", "fork-join", "layered", "independent"];

impl Options {
    pub(super) fn graph(&self, seed: u64) -> miette::Result<TaskGraph> {
        let Options { tiles, tile_size, width, steps, length, bytes, density, .. } = *self;
        Ok(match self.workload.as_str() {
            "cholesky" => generate::cholesky(tiles, tile_size),
            "lu" => generate::lu(tiles, tile_size),
            "qr" => generate::qr(tiles, tile_size),
            "stencil" => generate::stencil(width, steps, length, bytes),
            "fork-join" => generate::fork_join(width, steps, length, bytes),
            "layered" => generate::layered(generate::Layered { layers: steps, width, density, length, bytes, seed }),
            "independent" => generate::independent(width, length),
            path if path.contains(['/', '.']) || Path::new(path).exists() => graph::read(Path::new(path))?,
            other => {
                let help = crate::policy::did_you_mean(other, GENERATED, "workloads");
                return Err(miette::miette!(help = help, "there is no workload `{other}`"));
            }
        })
    }
}
