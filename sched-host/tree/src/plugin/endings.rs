//! What a library runs when the process ends.

use super::elf::Dynamic;
use libloading::os::unix::Library;
use object::Endianness;
use object::elf::{DT_FINI, DT_FINI_ARRAY, DT_FINI_ARRAYSZ, DT_NULL};
use object::read::elf::Dyn as _;
use std::ffi::c_void;

/// The head of what the loader keeps of a library. It is the same in every C library that has `dlinfo`.
#[repr(C)]
struct LinkMap {
    /// What is added to the addresses in the file.
    base: usize,
    name: *const libc::c_char,
    dynamic: *const Dynamic,
}

/// Runs the functions that a library has for the end of the process, in the order in which the loader does. The library
/// stays mapped: threads of its own may run.
///
/// # Safety
/// The library is whole, or the process may die of it, and nothing of it is used afterwards. The process skips these
/// functions at its own end.
pub(super) unsafe fn run(library: &'static Library) {
    // SAFETY: the copy gives its handle away, and is not dropped.
    let handle = unsafe { std::ptr::read(library) }.into_raw();
    let mut map: *const LinkMap = std::ptr::null();
    // SAFETY: the handle is open, and this request writes a pointer to a structure that begins as above.
    if unsafe { libc::dlinfo(handle, libc::RTLD_DI_LINKMAP, (&raw mut map).cast::<c_void>()) } != 0 || map.is_null() {
        return;
    }
    // SAFETY: the structure lives as long as the library is open, which is to the end.
    let LinkMap { base, mut dynamic, .. } = unsafe { map.read() };
    let (mut last, mut array, mut size) = (0, 0, 0);
    // SAFETY: the loader has read this table up to its end when it mapped the library.
    while let Some(entry) = unsafe { dynamic.as_ref() }.filter(|entry| entry.tag(Endianness::default()) != DT_NULL) {
        let value = entry.val(Endianness::default()) as usize;
        match entry.tag(Endianness::default()) {
            DT_FINI => last = value,
            DT_FINI_ARRAY => array = value,
            DT_FINI_ARRAYSZ => size = value,
            _ => {}
        }
        // SAFETY: the entry was not the last.
        dynamic = unsafe { dynamic.add(1) };
    }
    let listed = (0..size / size_of::<usize>()).rev().map(|place| {
        // SAFETY: the table has so many addresses, which the loader has relocated.
        unsafe { *((base + array) as *const usize).add(place) }
    });
    for address in listed.chain((last != 0).then_some(base + last)) {
        // SAFETY: these are functions without arguments, as the loader calls them.
        let function: extern "C" fn() = unsafe { std::mem::transmute(address) };
        function();
    }
}
