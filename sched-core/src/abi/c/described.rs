//! Reads the description of a component from its table.

#[cfg(test)]
mod tests;

use super::tables::{RawParam, RawPlugin, RawSlot, RawValue, Table};
use crate::info::{Arity, ComponentInfo, Family, SlotInfo};
use crate::params::{ParamInfo, ParamKind, Value};
use std::ffi::{CStr, c_char};
use std::mem::MaybeUninit;

/// Maximum number of entries of a list, without the null that ends it. A list without an end is found by it, or by the
/// trial in a child process.
const MOST: usize = 1024;

/// Maximum size of a table in bytes, of any version.
const LARGEST: usize = 1 << 16;

/// A component, as its plugin describes it.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) info: ComponentInfo,
    /// Functions that the plugin's table does not reach to are absent.
    pub(super) table: Table,
}

// SAFETY: the pointers in a table lead to constants and functions of a library that is never unloaded.
unsafe impl Send for Described {}
// SAFETY: as above; nobody writes there.
unsafe impl Sync for Described {}

/// The components of a plugin, or all that is wrong with them in one line.
///
/// # Safety
/// `plugin` is what `msched.h` makes, in a library that is never unloaded.
pub(super) unsafe fn read(plugin: *const RawPlugin, package: &str) -> Result<Vec<Described>, String> {
    // SAFETY: the caller guarantees that it is there.
    let plugin = unsafe { &*plugin };
    if (plugin.size as usize) < size_of::<RawPlugin>() || plugin.size as usize > LARGEST {
        return Err(format!("its list of components has {} bytes, expected {}", plugin.size, size_of::<RawPlugin>()));
    }
    if plugin.components.is_null() || plugin.count == 0 || plugin.count as usize > MOST {
        return Err(format!("it lists {} components, expected 1 to {MOST}", plugin.count));
    }
    // SAFETY: the list has this many entries.
    let tables = unsafe { std::slice::from_raw_parts(plugin.components, plugin.count as usize) };
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for (table, number) in tables.iter().zip(1..) {
        // SAFETY: an entry is null or a table.
        match unsafe { component(*table, number, package) } {
            Ok(described) => found.push(described),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(found) } else { Err(faults.join("; ")) }
}

/// # Safety
/// `table` is null or a table that says its size.
unsafe fn component(table: *const Table, number: u32, package: &str) -> Result<Described, String> {
    // SAFETY: the caller guarantees it.
    let table = unsafe { copied(table) }.map_err(|why| format!("component {number} {why}"))?;
    let mut faults = Vec::new();
    // SAFETY: texts of a table are null or end with a zero byte.
    let name = unsafe { text(table.name) }.unwrap_or_default();
    // SAFETY: as above, and lists end with an entry without a name.
    let info = unsafe { info(&table, package, &mut faults) };
    if name.is_empty() {
        faults.push("has no name".to_owned());
    }
    if table.push_task.is_none() {
        faults.push("has no function `push_task`".to_owned());
    }
    if info.stores && table.drain.is_none() {
        faults.push("stores tasks, and has no function `drain`".to_owned());
    }
    if table.build.is_none() && table.destroy.is_some() {
        faults.push("has a function `destroy`, and no `build`".to_owned());
    }
    let shown = if name.is_empty() { format!("component {number}") } else { format!("component `{name}`") };
    if faults.is_empty() { Ok(Described { info, table }) } else { Err(format!("{shown} {}", faults.join(", "))) }
}

/// A copy of what both sides know of a table; the rest is null.
///
/// # Safety
/// `table` is null or a table that says its size.
unsafe fn copied(table: *const Table) -> Result<Table, String> {
    if table.is_null() {
        return Err("is null".to_owned());
    }
    // SAFETY: the size comes first.
    let size = unsafe { table.cast::<u32>().read() } as usize;
    if !(Table::LEAST..=LARGEST).contains(&size) || !size.is_multiple_of(align_of::<Table>()) {
        let expected = size_of::<Table>();
        return Err(format!("says that its table has {size} bytes, expected {expected}: `sizeof(msched_component)`"));
    }
    let mut copy = MaybeUninit::<Table>::zeroed();
    // SAFETY: both have this many bytes; a null pointer, and an absent function, are zeros.
    Ok(unsafe {
        table.cast::<u8>().copy_to_nonoverlapping(copy.as_mut_ptr().cast(), size.min(size_of::<Table>()));
        copy.assume_init()
    })
}

fn family(table: &Table, faults: &mut Vec<String>) -> Family {
    match table.family {
        1 => Family::FlowControl,
        2 => Family::ResourceMapping,
        3 => Family::SpecialPurpose,
        4 => Family::Worker,
        other => {
            faults.push(format!("has family {other}, expected 1 to 4"));
            Family::SpecialPurpose
        }
    }
}

fn arity(table: &Table, family: Family, faults: &mut Vec<String>) -> Arity {
    match (table.arity, family) {
        (0, Family::ResourceMapping) | (3, _) => Arity::Many,
        (0, Family::Worker) | (1, _) => Arity::Leaf,
        (0 | 2, _) => Arity::One,
        (4, _) => Arity::Slots,
        (5, _) => Arity::ManyAndSlots,
        (other, _) => {
            faults.push(format!("has arity {other}, expected 0 to 5"));
            Arity::One
        }
    }
}

/// # Safety
/// Texts of the table are null or end with a zero byte, and lists end with an entry without a name.
unsafe fn info(table: &Table, package: &str, faults: &mut Vec<String>) -> ComponentInfo {
    let family = family(table, faults);
    let arity = arity(table, family, faults);
    // SAFETY: as the caller promises.
    let (bounds, mut slots, params, optional) = unsafe {
        let bounds = list(table.bounds, |name| text(*name), faults);
        let slots = list(table.slots, |slot| slot_info(slot), faults);
        let optional = list(table.optional_slots, |name| text(*name), faults);
        (bounds, slots, list(table.params, |param| param_info(param), faults), optional)
    };
    for name in optional {
        match slots.iter_mut().find(|slot| slot.name == name) {
            Some(slot) => slot.optional = true,
            None => faults.push(format!("may do without a slot `{name}`, and has none of this name")),
        }
    }
    let mut named = Vec::new();
    for param in params {
        match param {
            Ok(param) => named.push(param),
            Err(fault) => faults.push(fault),
        }
    }
    // SAFETY: as the caller promises.
    let (name, doc) = unsafe { (text(table.name), text(table.doc)) };
    // Other bits are those of later versions, which this one can do without.
    let has = |bit: u32| table.flags & 1 << bit != 0;
    ComponentInfo {
        name: name.unwrap_or_default(),
        family,
        doc: doc.unwrap_or_default(),
        package: package.to_owned(),
        arity,
        stores: has(0),
        bounds,
        slots,
        params: named,
        lookahead: if table.lookahead == 0 { 2 } else { table.lookahead },
        may_refuse: has(1),
        needs_models: has(2),
        forwards_pull: has(3),
        forwards_push: has(4),
        wakes_workers: has(5),
        pulled_only: has(6),
        empty_until_pushed: has(7),
        combined: has(8),
        pushes_on_pull: has(9),
        end_is_noted: has(10),
        keeps_state: has(11),
        hears_tasks: has(12) && (table.task_started.is_some() || table.task_ended.is_some()),
        newest_comes_back: has(13),
        waits_at_home: has(14),
    }
}

/// Entries up to the one that `read` gives nothing for.
///
/// # Safety
/// There is such an entry, and `read` may look at all before it.
unsafe fn list<T, U>(start: *const T, read: impl Fn(&T) -> Option<U>, faults: &mut Vec<String>) -> Vec<U> {
    let mut found = Vec::new();
    if start.is_null() {
        return found;
    }
    // One more is looked at: it ends a list of the maximum length.
    for place in 0..=MOST {
        // SAFETY: the end was not reached yet.
        match read(unsafe { &*start.add(place) }) {
            Some(entry) => found.push(entry),
            None => return found,
        }
    }
    faults.push(format!("has a list of more than {MOST} entries, which should end with a null"));
    found
}

/// # Safety
/// Its texts are null or end with a zero byte.
unsafe fn slot_info(slot: &RawSlot) -> Option<SlotInfo> {
    // SAFETY: as the caller promises.
    unsafe { Some(SlotInfo { name: text(slot.name)?, doc: text(slot.doc).unwrap_or_default(), optional: false }) }
}

/// # Safety
/// Its texts are null or end with a zero byte.
unsafe fn param_info(param: &RawParam) -> Option<Result<ParamInfo, String>> {
    // SAFETY: as the caller promises.
    let (name, doc, unit) = unsafe { (text(param.name)?, text(param.doc), text(param.unit)) };
    let RawValue { integer, number, text: words } = param.initial;
    let (kind, default) = match param.kind {
        0 => (ParamKind::Bool, Value::Bool(integer != 0)),
        1 => (ParamKind::Int { min: param.min.integer, max: param.max.integer }, Value::Int(integer)),
        2 => (ParamKind::Float { min: param.min.number, max: param.max.number }, Value::Float(number)),
        // SAFETY: as the caller promises.
        3 => unsafe {
            let choices =
                text(param.max.text).map(|texts| texts.split(',').map(|word| word.trim().to_owned()).collect());
            (choices.map_or(ParamKind::Text, ParamKind::Choice), Value::Text(text(words).unwrap_or_default()))
        },
        other => return Some(Err(format!("has a parameter `{name}` of type {other}, expected 0 to 3"))),
    };
    let (doc, unit) = (doc.unwrap_or_default(), unit.unwrap_or_default());
    Some(Ok(ParamInfo { name, kind, default, unit, doc }))
}

/// A text, unless it is null. Bytes that are no UTF-8 are replaced.
///
/// # Safety
/// It is null or ends with a zero byte.
pub(super) unsafe fn text(start: *const c_char) -> Option<String> {
    // SAFETY: as the caller promises.
    (!start.is_null()).then(|| unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned())
}
