//! Checks of a shared library before the loader of the system maps it.

use super::error::LoadErrorKind;
use object::elf::{self, ELFMAG, Machine};
use object::read::elf::{Dyn as _, FileHeader as _, ProgramHeader as _, Sym as _};
use object::{Endianness, ReadCache, ReadRef};
use sched_core::abi::stamp;
use std::env::consts::ARCH;
use std::fs::File;

#[cfg(target_pointer_width = "64")]
pub(super) type FileHeader = elf::FileHeader64<Endianness>;
#[cfg(target_pointer_width = "32")]
pub(super) type FileHeader = elf::FileHeader32<Endianness>;
/// An entry of the table for the loader.
pub(super) type Dynamic = <FileHeader as object::read::elf::FileHeader>::Dyn;
pub(super) type ProgramHeader = <FileHeader as object::read::elf::FileHeader>::ProgramHeader;

/// Machines by their names in target triples.
const MACHINES: &[(&str, Machine)] = &[
    ("x86_64", elf::EM_X86_64),
    ("aarch64", elf::EM_AARCH64),
    ("riscv64", elf::EM_RISCV),
    ("powerpc64", elf::EM_PPC64),
    ("s390x", elf::EM_S390),
    ("loongarch64", elf::EM_LOONGARCH),
    ("x86", elf::EM_386),
    ("arm", elf::EM_ARM),
];

/// Maximum size of a stamp, of any version.
const STAMP_LIMIT: u64 = 4096;

/// The bytes of a library's stamp, after checks that the file is complete and made for this machine.
///
/// The loader maps segments without checking that the file contains them, and a process that touches a page beyond the
/// end of the file is killed. So a truncated file must not reach the loader.
pub(super) fn stamp_bytes(file: File, length: u64) -> Result<Vec<u8>, LoadErrorKind> {
    let cache = ReadCache::new(file);
    let data = &cache;
    let start = data
        .read_bytes_at(0, length.min(16))
        .map_err(|()| LoadErrorKind::Unreadable("its first bytes cannot be read".to_owned()))?;
    if start.is_empty() {
        return Err(LoadErrorKind::NotALibrary("empty".to_owned()));
    }
    if !start.starts_with(&ELFMAG) {
        let shown = start[..start.len().min(8)].escape_ascii();
        return Err(LoadErrorKind::NotALibrary(format!("a file that begins with \"{shown}\"")));
    }
    let header_size = size_of::<FileHeader>() as u64;
    if length < header_size {
        return Err(LoadErrorKind::Truncated { found: length, expected: header_size });
    }
    let header = FileHeader::parse(data).map_err(|_| other_machine(start))?;
    let endian = header.endian().map_err(malformed)?;
    let machine = header.e_machine(endian);
    if host_machine().is_some_and(|host| host != machine) {
        return Err(LoadErrorKind::Machine { found: machine_name(machine), expected: ARCH.to_owned() });
    }
    if header.e_type(endian) != elf::ET_DYN {
        return Err(LoadErrorKind::NotALibrary("an ELF file of another type".to_owned()));
    }

    let expected = table_ends(header, endian).ok_or_else(overflow)?;
    whole(length, expected)?;
    let segments = header.program_headers(endian, data).map_err(malformed)?;
    let expected = segments.iter().try_fold(expected, |end, segment| {
        let (offset, size) = segment.file_range(endian);
        Some(end.max(offset.checked_add(size)?))
    });
    whole(length, expected.ok_or_else(overflow)?)?;

    let sections = header.sections(endian, data).map_err(malformed)?;
    let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM).map_err(malformed)?;
    let stamp = symbols
        .iter()
        .filter(|symbol| !symbol.is_undefined(endian))
        .find(|symbol| symbols.symbol_name(endian, symbol).is_ok_and(|name| name == stamp::SYMBOL.as_bytes()))
        .ok_or(LoadErrorKind::NoStamp)?;
    let (address, size) = (stamp.st_value(endian), stamp.st_size(endian));
    let offset = file_offset(segments, endian, address, size)
        .ok_or_else(|| LoadErrorKind::Malformed(format!("`{}` lies in no segment", stamp::SYMBOL)))?;
    let bytes = data.read_bytes_at(offset, size.min(STAMP_LIMIT));
    bytes.map(<[u8]>::to_vec).map_err(|()| LoadErrorKind::Unreadable("its stamp cannot be read".to_owned()))
}

/// Whether a library names its own folder (`$ORIGIN`) in the path on which the loader looks for what it needs.
pub(super) fn needs_its_folder(library: &[u8]) -> bool {
    let run_paths = || -> object::read::Result<bool> {
        let header = FileHeader::parse(library)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, library)?;
        let Some((entries, link)) = sections.dynamic(endian, library)? else { return Ok(false) };
        let strings = sections.strings(endian, library, link)?;
        let paths = entries.iter().filter(|entry| {
            let tag = entry.tag(endian);
            tag == elf::DT_RUNPATH || tag == elf::DT_RPATH
        });
        Ok(paths
            .filter_map(|entry| entry.string(endian, strings).ok())
            .any(|path| path.windows(6).any(|word| word == b"ORIGIN")))
    };
    run_paths().unwrap_or(false)
}

/// End of the two tables of headers.
fn table_ends(header: &FileHeader, endian: Endianness) -> Option<u64> {
    let end = |offset: u64, size: u16, count: u16| offset.checked_add(u64::from(size) * u64::from(count));
    let segments = end(header.e_phoff(endian), header.e_phentsize(endian), header.e_phnum(endian))?;
    let sections = end(header.e_shoff(endian), header.e_shentsize(endian), header.e_shnum(endian))?;
    Some(segments.max(sections))
}

/// Offset in the file of the bytes at this address.
pub(super) fn file_offset(segments: &[ProgramHeader], endian: Endianness, address: u64, size: u64) -> Option<u64> {
    segments.iter().filter(|segment| segment.p_type(endian) == elf::PT_LOAD).find_map(|segment| {
        let within = address.checked_sub(segment.p_vaddr(endian))?;
        let (offset, length) = segment.file_range(endian);
        (within.checked_add(size)? <= length).then(|| offset + within)
    })
}

fn whole(found: u64, expected: u64) -> Result<(), LoadErrorKind> {
    if found < expected { Err(LoadErrorKind::Truncated { found, expected }) } else { Ok(()) }
}

fn host_machine() -> Option<Machine> {
    MACHINES.iter().find(|(name, _)| *name == ARCH).map(|(_, machine)| *machine)
}

fn machine_name(machine: Machine) -> String {
    let known = MACHINES.iter().find(|(_, known)| *known == machine);
    known.map_or_else(|| format!("machine {}", machine.0), |(name, _)| (*name).to_owned())
}

/// Error for a header whose width or byte order differs from this process's.
fn other_machine(ident: &[u8]) -> LoadErrorKind {
    let found = match (ident.get(4), ident.get(5)) {
        (Some(1), _) if usize::BITS != 32 => "a 32-bit machine".to_owned(),
        (Some(2), _) if usize::BITS != 64 => "a 64-bit machine".to_owned(),
        _ => return LoadErrorKind::Malformed("its class, byte order or version is unknown".to_owned()),
    };
    LoadErrorKind::Machine { found, expected: ARCH.to_owned() }
}

pub(super) fn malformed(error: object::read::Error) -> LoadErrorKind {
    LoadErrorKind::Malformed(error.to_string())
}

fn overflow() -> LoadErrorKind {
    LoadErrorKind::Malformed("an offset beyond all files".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn stamp_of(bytes: &[u8], length: u64) -> Result<Vec<u8>, LoadErrorKind> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        stamp_bytes(file, length)
    }

    /// A header of this machine that names some segments and sections.
    fn header() -> Vec<u8> {
        let executable = File::open(std::env::current_exe().unwrap()).unwrap();
        let mut start = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(executable, 2048), &mut start).unwrap();
        start
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            changes in proptest::collection::vec((0usize..2048, any::<u8>()), 0..12),
            length in prop_oneof![Just(2048), Just(u64::MAX), 0..4096u64],
        ) {
            let mut bytes = header();
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            // The part of the file contains no stamp.
            prop_assert!(stamp_of(&bytes, length).is_err());
        }
    }
}
