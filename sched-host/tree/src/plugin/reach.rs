//! What the loader of the system does on the word of a library, beyond that library.
//!
//! The loader believes what a library says of its own memory: where segments are mapped, where addresses are filled in,
//! what is made read-only afterwards. One wrong bit there makes it write to memory of somebody else: a stack, a heap, a
//! second library. A child that loads such a file on trial may never look at that memory, and pass it, while threads of
//! its parent do. So these places are compared with the library's own segments before anything is loaded. So are two
//! numbers that the loader does not check either: of symbols' versions, and of functions for the end of the process.

use super::elf::{Dynamic, FileHeader, ProgramHeader, file_offset, malformed};
use super::error::LoadErrorKind;
use object::elf::{
    DT_FINI_ARRAY, DT_FINI_ARRAYSZ, DT_JMPREL, DT_NULL, DT_PLTREL, DT_PLTRELSZ, DT_REL, DT_RELA, DT_RELASZ, DT_RELR,
    DT_RELRSZ, DT_RELSZ, PT_DYNAMIC, PT_GNU_RELRO, PT_LOAD, PT_TLS, SHT_DYNSYM,
};
use object::pod::Pod;
use object::read::elf::{Dyn as _, FileHeader as Header, ProgramHeader as _, Rel as _, Rela as _, RelrIterator};
use object::{Endianness, ReadRef, SymbolIndex};
use std::ops::Range;

type Rel = <FileHeader as Header>::Rel;
type Rela = <FileHeader as Header>::Rela;
type Relr = <FileHeader as Header>::Relr;

/// Largest page of any machine that a plugin can be for: what is made read-only may end with a page.
const PAGE: u64 = 64 << 10;

/// Refuses a library, whose headers were found complete, if the loader would reach beyond it.
pub(super) fn check<'data>(data: impl ReadRef<'data>) -> Result<(), LoadErrorKind> {
    let header = FileHeader::parse(data).map_err(malformed)?;
    let endian = header.endian().map_err(malformed)?;
    let segments = header.program_headers(endian, data).map_err(malformed)?;
    let library = Described { data, endian, segments, memory: memory_of(segments, endian)? };
    library.check_special_segments()?;
    library.check_tables()?;
    check_versions(header, endian, data)
}

/// The versions of symbols, which the loader has in a table on the heap: a number beyond its end is read from whatever
/// lies there, which differs from process to process.
fn check_versions<'data>(
    header: &FileHeader,
    endian: Endianness,
    data: impl ReadRef<'data>,
) -> Result<(), LoadErrorKind> {
    let sections = header.sections(endian, data).map_err(malformed)?;
    let Some(versions) = sections.versions(endian, data).map_err(malformed)? else { return Ok(()) };
    let symbols = sections.symbols(endian, data, SHT_DYNSYM).map_err(malformed)?;
    for index in (0..symbols.len()).map(SymbolIndex) {
        versions.version(versions.version_index(endian, index).index()).map_err(malformed)?;
    }
    Ok(())
}

/// The memory of each segment, which must follow each other: the loader reserves what lies between the first and the
/// last, and maps each over whatever is there.
fn memory_of(segments: &[ProgramHeader], endian: Endianness) -> Result<Vec<Range<u64>>, LoadErrorKind> {
    let mut memory: Vec<Range<u64>> = Vec::new();
    for segment in segments.iter().filter(|segment| segment.p_type(endian) == PT_LOAD) {
        let range = range_of(segment, endian)?;
        if memory.last().is_some_and(|last| range.start < last.end) {
            return Err(wrong(format!("its segment at {:#x} overlaps the one before or precedes it", range.start)));
        }
        memory.push(range);
    }
    Ok(memory)
}

/// The addresses of a segment, of which the file holds no more than there is.
fn range_of(segment: &ProgramHeader, endian: Endianness) -> Result<Range<u64>, LoadErrorKind> {
    let (start, size) = (segment.p_vaddr(endian), segment.p_memsz(endian));
    let end = start.checked_add(size).filter(|_| segment.p_filesz(endian) <= size);
    end.map(|end| start..end).ok_or_else(|| wrong(format!("its segment at {start:#x} has no such size")))
}

fn wrong(what: String) -> LoadErrorKind {
    LoadErrorKind::Malformed(what)
}

/// A table of the library: its address, and its size in bytes.
#[derive(Clone, Copy)]
struct Table {
    address: Option<u64>,
    size: u64,
}

struct Described<'data, R> {
    data: R,
    endian: Endianness,
    segments: &'data [ProgramHeader],
    /// Of the segments that are mapped, in ascending order.
    memory: Vec<Range<u64>>,
}

impl<'data, R: ReadRef<'data>> Described<'data, R> {
    /// What is copied for each thread, and what is made read-only.
    fn check_special_segments(&self) -> Result<(), LoadErrorKind> {
        let start = self.memory.first().map_or(0, |first| first.start);
        let end = self.memory.last().map_or(0, |last| last.end.saturating_add(PAGE));
        for segment in self.segments {
            let range = match segment.p_type(self.endian) {
                // What follows the image is zero, and lies in the memory of the threads alone.
                PT_TLS => range_of(segment, self.endian)
                    .map(|range| range.start..range.start + segment.p_filesz(self.endian))?,
                PT_GNU_RELRO => range_of(segment, self.endian)?,
                _ => continue,
            };
            if range.start < start || range.end > end {
                return Err(wrong(format!("its segment at {:#x} is not among what is mapped", range.start)));
            }
        }
        Ok(())
    }

    /// What the loader finds by the tables that it reads first.
    fn check_tables(&self) -> Result<(), LoadErrorKind> {
        let mut dynamic: Vec<&Dynamic> = Vec::new();
        for segment in self.segments.iter().filter(|segment| segment.p_type(self.endian) == PT_DYNAMIC) {
            let table = Table { address: Some(segment.p_vaddr(self.endian)), size: segment.p_filesz(self.endian) };
            dynamic
                .extend(self.entries::<Dynamic>(table)?.iter().take_while(|entry| entry.tag(self.endian) != DT_NULL));
        }
        // Of two, the loader takes the last.
        let value =
            |tag| dynamic.iter().rev().find(|entry| entry.tag(self.endian) == tag).map(|entry| entry.val(self.endian));
        let table = |address, size| Table { address: value(address), size: value(size).unwrap_or(0) };
        if let (Some(address), None) = (value(DT_FINI_ARRAY), value(DT_FINI_ARRAYSZ)) {
            // The loader asks for the size without a look whether it is there, and does so only when the process ends.
            return Err(wrong(format!("its functions for the end of the process, at {address:#x}, have no number")));
        }
        let mut rel = vec![table(DT_REL, DT_RELSZ)];
        let mut rela = vec![table(DT_RELA, DT_RELASZ)];
        let plt_is_rel = value(DT_PLTREL) == Some(DT_REL.0.cast_unsigned());
        if plt_is_rel { &mut rel } else { &mut rela }.push(table(DT_JMPREL, DT_PLTRELSZ));
        for table in rel {
            self.check_targets(self.entries::<Rel>(table)?.iter().map(|entry| entry.r_offset(self.endian)))?;
        }
        for table in rela {
            self.check_targets(self.entries::<Rela>(table)?.iter().map(|entry| entry.r_offset(self.endian)))?;
        }
        let relr = self.entries::<Relr>(table(DT_RELR, DT_RELRSZ))?;
        self.check_targets(RelrIterator::<FileHeader>::new(self.endian, relr))
    }

    fn entries<T: Pod>(&self, table: Table) -> Result<&'data [T], LoadErrorKind> {
        let Some(address) = table.address else { return Ok(&[]) };
        let offset = file_offset(self.segments, self.endian, address, table.size);
        let count = table.size / size_of::<T>() as u64;
        let entries = offset.and_then(|offset| self.data.read_slice_at(offset, usize::try_from(count).ok()?).ok());
        entries.ok_or_else(|| wrong(format!("its table at {address:#x} is not in the file")))
    }

    /// Where addresses are filled in.
    fn check_targets(&self, targets: impl Iterator<Item = impl Into<u64>>) -> Result<(), LoadErrorKind> {
        const WORD: u64 = size_of::<usize>() as u64;
        for target in targets.map(Into::into) {
            let holds = |memory: &&Range<u64>| memory.contains(&target) && memory.end - target >= WORD;
            if self.memory.iter().find(holds).is_none() {
                return Err(wrong(format!("a relocation changes {target:#x}, which is not in its segments")));
            }
        }
        Ok(())
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;
    use object::elf::DynamicTag;
    use proptest::prelude::*;

    /// Where the tables of the small library lie: in its first segment, at the address that is their place in the file.
    const DYNAMIC: u64 = 0x200;
    const RELA: u64 = 0x300;
    const RELR: u64 = 0x380;
    /// Its second segment, of which the file holds the first half.
    const DATA: Range<u64> = 0x2000..0x2200;

    /// What the loader learns of a small library.
    #[derive(Clone)]
    struct Library {
        /// Type, address, size in the file, size.
        segments: Vec<(u32, u64, u64, u64)>,
        /// What each relocation changes.
        rela: Vec<u64>,
        relr: Vec<u64>,
        /// Size of the first table.
        rela_size: u64,
        /// Where its functions for the end of the process are, and their size.
        endings: [(DynamicTag, u64); 2],
    }

    impl Library {
        fn sound() -> Library {
            let segments = vec![
                (PT_LOAD.0, 0, 0x400, 0x400),
                (PT_LOAD.0, DATA.start, 0x100, DATA.end - DATA.start),
                (PT_DYNAMIC.0, DYNAMIC, 0x80, 0x80),
                // With far more memory that is zero than there is in the library.
                (PT_TLS.0, DATA.start, 0x10, 1 << 24),
                // To the end of a page, as linkers round it.
                (PT_GNU_RELRO.0, DATA.start, 0x100, 0x1000),
            ];
            // A word, and by a bit for each the first and the third after it.
            let relr = vec![DATA.start + 0x40, 0b1011];
            let endings = [(DT_FINI_ARRAY, DATA.start), (DT_FINI_ARRAYSZ, 8)];
            Library { segments, rela: vec![DATA.start, DATA.end - 8], relr, rela_size: 2 * 24, endings }
        }

        fn bytes(&self) -> Vec<u8> {
            let mut bytes = vec![0; 0x500];
            let mut put = |at: u64, value: &[u8]| bytes[at as usize..][..value.len()].copy_from_slice(value);
            let order = if cfg!(target_endian = "big") { 2 } else { 1 };
            put(0, &[0x7f, b'E', b'L', b'F', 2, order, 1]);
            put(16, &3_u16.to_ne_bytes());
            put(20, &1_u32.to_ne_bytes());
            put(32, &64_u64.to_ne_bytes());
            for (at, value) in [(52, 64_u16), (54, 56), (56, self.segments.len() as u16)] {
                put(at, &value.to_ne_bytes());
            }
            for (place, &(kind, address, in_file, size)) in (0..).zip(&self.segments) {
                let at = 64 + 56 * place;
                put(at, &kind.to_ne_bytes());
                let offset = if address == DATA.start { 0x400 } else { address };
                for (word, value) in (1..).zip([offset, address, address, in_file, size]) {
                    put(at + 8 * word, &value.to_ne_bytes());
                }
            }
            let entries = [
                (DT_RELA, RELA),
                (DT_RELASZ, self.rela_size),
                (DT_RELR, RELR),
                (DT_RELRSZ, 8 * self.relr.len() as u64),
                self.endings[0],
                self.endings[1],
                (DT_NULL, 0),
                // Behind the end.
                (DT_RELASZ, u64::MAX),
            ];
            for (place, (tag, value)) in (0..).zip(entries) {
                put(DYNAMIC + 16 * place, &tag.0.to_ne_bytes());
                put(DYNAMIC + 16 * place + 8, &value.to_ne_bytes());
            }
            for (place, target) in (0..).zip(&self.rela) {
                put(RELA + 24 * place, &target.to_ne_bytes());
            }
            for (place, entry) in (0..).zip(&self.relr) {
                put(RELR + 8 * place, &entry.to_ne_bytes());
            }
            bytes
        }

        fn check(&self) -> Result<(), LoadErrorKind> {
            check(&*self.bytes())
        }
    }

    #[test]
    fn what_changes_its_own_memory_only_passes() {
        Library::sound().check().expect("it is sound");
    }

    #[test]
    fn what_changes_other_memory_is_refused() {
        let sound = Library::sound();
        let mut cases = Vec::new();
        for target in [DATA.start ^ 1 << 40, DATA.end - 7, 0x400, u64::MAX] {
            cases.push(Library { rela: vec![DATA.start, target], ..sound.clone() });
        }
        cases.push(Library { relr: vec![DATA.end], ..sound.clone() });
        // The third word behind the last but one.
        cases.push(Library { relr: vec![DATA.end - 16, 0b1001], ..sound.clone() });
        for rela_size in [u64::MAX, 0x1000] {
            cases.push(Library { rela_size, ..sound.clone() });
        }
        for (place, size) in [(1, u64::MAX), (1, 0x80), (3, 0x8), (4, 1 << 20)] {
            let mut case = sound.clone();
            case.segments[place].3 = size;
            cases.push(case);
        }
        for (place, address) in [(2, 1 << 30), (3, 1 << 30), (4, 1 << 30)] {
            let mut case = sound.clone();
            case.segments[place].1 = address;
            cases.push(case);
        }
        cases.push(Library { endings: [(DT_FINI_ARRAY, DATA.start); 2], ..sound.clone() });
        // One that is mapped over the other, and one before it.
        let mut case = sound.clone();
        case.segments[1].1 = 0x200;
        cases.push(case);
        let mut case = sound.clone();
        case.segments.swap(0, 1);
        cases.push(case);
        for (place, case) in cases.iter().enumerate() {
            let refused = case.check();
            assert!(matches!(refused, Err(LoadErrorKind::Malformed(_))), "case {place}: {refused:?}");
        }
    }

    #[test]
    fn a_version_that_there_is_not_is_refused() {
        let executable = std::env::current_exe().expect("this test has a path");
        let mut bytes = std::fs::read(executable).expect("it can be read");
        check(&*bytes).expect("it is sound");
        let header = FileHeader::parse(&*bytes).expect("it has been started");
        let endian = header.endian().expect("as before");
        let sections = header.sections(endian, &*bytes).expect("it has sections");
        let Some((versions, _)) = sections.gnu_versym(endian, &*bytes).expect("as before") else { return };
        let last = std::ptr::from_ref(versions.last().expect("it has symbols")).addr() - bytes.as_ptr().addr();
        bytes[last + usize::from(cfg!(target_endian = "little"))] ^= 0x40;
        assert!(matches!(check(&*bytes), Err(LoadErrorKind::Malformed(_))));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(changes in proptest::collection::vec((0usize..0x400, any::<u8>()), 0..12)) {
            let mut bytes = Library::sound().bytes();
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            let _ = check(&*bytes);
        }
    }
}
