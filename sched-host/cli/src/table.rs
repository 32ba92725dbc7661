//! Text tables.

use comfy_table::{CellAlignment, Row, Table, presets};

/// A table; the columns `numbers` are right-aligned.
pub(super) fn table<R: Into<Row>>(
    header: impl Into<Row>,
    rows: impl IntoIterator<Item = R>,
    numbers: impl IntoIterator<Item = usize>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    for row in rows {
        table.add_row(row);
    }
    for number in numbers {
        if let Some(column) = table.column_mut(number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    if let Some(first) = table.column_mut(0) {
        first.set_padding((0, 1));
    }
    table.trim_fmt()
}
