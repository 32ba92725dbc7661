//! How data is divided into parts.

use super::layout::MatrixLayout;
use sched_graph::Region;
use std::ops::{Deref, Range};

/// A division of an array or a matrix into parts; see [`ArrayHandle::partition`](super::array::ArrayHandle::partition).
///
/// Indices are relative to what is divided. Parts may overlap and need not cover all elements.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[must_use = "a plan does nothing by itself"]
pub struct Plan {
    division: Division,
    /// Rows and columns by which each part reaches into its neighbours.
    halo: (usize, usize),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Division {
    Grid { rows: Cut, columns: Cut },
    Regions(Vec<Region>),
}

/// How one dimension is cut.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Cut {
    Not,
    /// A number of parts, whose lengths differ by at most one.
    Into(usize),
    /// Parts of this length; the last one may be shorter.
    Of(usize),
}

impl Cut {
    fn ranges(self, length: usize) -> Result<Vec<Range<usize>>, PartitionError> {
        match self {
            Cut::Not => Ok(std::iter::once(0..length).collect()),
            Cut::Into(0) | Cut::Of(0) => Err(PartitionError::NoParts),
            Cut::Into(parts) => {
                let (short, longer) = (length / parts, length % parts);
                let start = |part: usize| part * short + part.min(longer);
                Ok((0..parts).map(|part| start(part)..start(part + 1)).collect())
            }
            Cut::Of(most) => Ok((0..length).step_by(most).map(|start| start..(start + most).min(length)).collect()),
        }
    }
}

/// Why data was not divided.
#[derive(Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[non_exhaustive]
pub enum PartitionError {
    /// The plan has no parts, or parts of length 0.
    #[error("the plan has 0 parts, or parts of length 0")]
    #[diagnostic(help("give a number of parts, or their length, of at least 1"))]
    NoParts,
    /// An array has no columns to divide.
    #[error("an array is divided into ranges, and the plan cuts columns")]
    #[diagnostic(help("use `Plan::ranges`, `Plan::chunks` or `Plan::these_ranges`"))]
    ColumnsOfArray,
    /// A part lies outside.
    #[error("part {part} of the plan is {region}, and there are {rows} rows and {columns} columns")]
    #[diagnostic(help("count from the first element of what is divided"))]
    Outside {
        /// Number of the part in the plan.
        part: usize,
        /// Its elements.
        region: Region,
        /// Number of rows, or of elements of an array.
        rows: usize,
        /// Number of columns; 1 for an array.
        columns: usize,
    },
}

sched_text::debug_as_text!(PartitionError);

impl Plan {
    fn grid(rows: Cut, columns: Cut) -> Plan {
        Plan { division: Division::Grid { rows, columns }, halo: (0, 0) }
    }

    /// Divides an array into `parts` ranges whose lengths differ by at most one.
    pub fn ranges(parts: usize) -> Plan {
        Plan::rows(parts)
    }

    /// Divides an array into ranges of `length` elements; the last one may be shorter.
    pub fn chunks(length: usize) -> Plan {
        Plan::grid(Cut::Of(length), Cut::Not)
    }

    /// Takes these ranges of an array as its parts.
    pub fn these_ranges(ranges: impl IntoIterator<Item = Range<usize>>) -> Plan {
        Plan::these_regions(ranges.into_iter().map(|rows| Region { rows, columns: 0..1 }))
    }

    /// Divides a matrix into `parts` groups of rows, whose numbers differ by at most one.
    pub fn rows(parts: usize) -> Plan {
        Plan::grid(Cut::Into(parts), Cut::Not)
    }

    /// Divides a matrix into `parts` groups of columns, whose numbers differ by at most one.
    pub fn columns(parts: usize) -> Plan {
        Plan::grid(Cut::Not, Cut::Into(parts))
    }

    /// Divides a matrix into `down` × `across` blocks, whose sides differ by at most one.
    pub fn blocks(down: usize, across: usize) -> Plan {
        Plan::grid(Cut::Into(down), Cut::Into(across))
    }

    /// Divides a matrix into tiles of `rows` × `columns` elements; the last ones may be smaller.
    pub fn tiles(rows: usize, columns: usize) -> Plan {
        Plan::grid(Cut::Of(rows), Cut::Of(columns))
    }

    /// Takes these regions of a matrix as its parts.
    pub fn these_regions(regions: impl IntoIterator<Item = Region>) -> Plan {
        Plan { division: Division::Regions(regions.into_iter().collect()), halo: (0, 0) }
    }

    /// Extends each part by `width` elements into its neighbours, on all sides where there are some: for tasks that
    /// read what lies beside the part that they write.
    pub fn halo(self, width: usize) -> Plan {
        let cut = |cut: &Cut| if *cut == Cut::Not { 0 } else { width };
        let halo = match &self.division {
            Division::Grid { rows, columns } => (cut(rows), cut(columns)),
            Division::Regions(_) => (width, width),
        };
        Plan { halo, ..self }
    }

    /// The regions of the parts, row after row, with the shape of the grid.
    pub(crate) fn regions(&self, of: MatrixLayout, array: bool) -> Result<(Vec<Region>, usize, usize), PartitionError> {
        let whole = of.region();
        let widen = |range: &Range<usize>, by: usize, most: usize| match range.is_empty() {
            true => range.clone(),
            false => range.start.saturating_sub(by)..range.end.saturating_add(by).min(most),
        };
        let widen = |rows: &Range<usize>, columns: &Range<usize>| Region {
            rows: widen(rows, self.halo.0, of.rows()),
            columns: widen(columns, self.halo.1, of.columns()),
        };
        match &self.division {
            Division::Grid { columns, .. } if array && *columns != Cut::Not => Err(PartitionError::ColumnsOfArray),
            Division::Grid { rows, columns } => {
                let (rows, columns) = (rows.ranges(of.rows())?, columns.ranges(of.columns())?);
                let regions = rows.iter().flat_map(|rows| columns.iter().map(move |columns| (rows, columns)));
                Ok((regions.map(|(rows, columns)| widen(rows, columns)).collect(), rows.len(), columns.len()))
            }
            Division::Regions(regions) => {
                let is_outside = |region: &Region| {
                    let is_turned = region.rows.start > region.rows.end || region.columns.start > region.columns.end;
                    is_turned || region.rows.end > whole.rows.end || region.columns.end > whole.columns.end
                };
                if let Some((part, region)) = regions.iter().enumerate().find(|(_, region)| is_outside(region)) {
                    let (rows, columns) = (of.rows(), of.columns());
                    return Err(PartitionError::Outside { part, region: region.clone(), rows, columns });
                }
                if regions.is_empty() {
                    return Err(PartitionError::NoParts);
                }
                let regions: Vec<Region> = regions.iter().map(|region| widen(&region.rows, &region.columns)).collect();
                let parts = regions.len();
                Ok((regions, parts, 1))
            }
        }
    }
}

/// The parts of an array or a matrix, as handles: row after row, as a slice, or by their place in the grid.
#[derive(Clone, Debug)]
pub struct Partition<H> {
    pub(crate) parts: Vec<H>,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl<H> Partition<H> {
    /// The part in this row and column of parts.
    ///
    /// # Panics
    /// If there is none.
    #[must_use]
    pub fn at(&self, row: usize, column: usize) -> &H {
        assert!(row < self.rows && column < self.columns, "part ({row}, {column}) of {:?}", self.shape());
        &self.parts[row * self.columns + column]
    }

    /// Numbers of rows and columns of parts.
    #[must_use]
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// The handles.
    #[must_use]
    pub fn into_vec(self) -> Vec<H> {
        self.parts
    }
}

impl<H> Deref for Partition<H> {
    type Target = [H];

    fn deref(&self) -> &[H] {
        &self.parts
    }
}

impl<H> IntoIterator for Partition<H> {
    type Item = H;
    type IntoIter = std::vec::IntoIter<H>;

    fn into_iter(self) -> Self::IntoIter {
        self.parts.into_iter()
    }
}

impl<'a, H> IntoIterator for &'a Partition<H> {
    type Item = &'a H;
    type IntoIter = std::slice::Iter<'a, H>;

    fn into_iter(self) -> Self::IntoIter {
        self.parts.iter()
    }
}
