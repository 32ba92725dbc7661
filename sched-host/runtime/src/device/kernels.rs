//! Compiled sources and their kernels, each once in a process.

use super::Device;
use parking_lot::Mutex;
use sched_core::driver::{DriverError, KernelId, ModuleId, Source};
use sched_text::hash;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, OnceLock};

/// Source of a kernel: text in the language of the driver, or what a compiler has made of it.
#[derive(Clone, Debug)]
pub struct KernelSource {
    content: Content,
    options: String,
    hash: u128,
}

#[derive(Clone, Debug)]
enum Content {
    Text(Arc<str>),
    Binary(Arc<[u8]>),
}

impl KernelSource {
    /// Text, as OpenCL C or CUDA C.
    #[must_use]
    pub fn text(text: impl Into<Arc<str>>) -> KernelSource {
        KernelSource::new(Content::Text(text.into()), String::new())
    }

    /// What a compiler has made: PTX, a program binary.
    #[must_use]
    pub fn binary(binary: impl Into<Arc<[u8]>>) -> KernelSource {
        KernelSource::new(Content::Binary(binary.into()), String::new())
    }

    /// Options for the compiler, such as `-DREAL=double`.
    #[must_use]
    pub fn options(self, options: impl Into<String>) -> KernelSource {
        KernelSource::new(self.content, options.into())
    }

    fn new(content: Content, options: String) -> KernelSource {
        let bytes = match &content {
            Content::Text(text) => text.as_bytes(),
            Content::Binary(binary) => binary,
        };
        let hash = hash::digest(&[bytes, &[0], options.as_bytes()].concat());
        KernelSource { content, options, hash }
    }

    fn source(&self) -> Source<'_> {
        match &self.content {
            Content::Text(text) => Source::Text { text, options: &self.options },
            Content::Binary(binary) => Source::Binary(binary),
        }
    }
}

impl From<&'static str> for KernelSource {
    fn from(text: &'static str) -> KernelSource {
        KernelSource::text(text)
    }
}

/// A source on a device: the address of the driver, which stays open, then device, and hash of the source.
type Key = (usize, u32, u128);
type Once<T> = Arc<OnceLock<Result<T, DriverError>>>;
type List<K, T> = Mutex<Option<HashMap<K, Once<T>>>>;

/// Sources that were compiled, or could not be. Devices compile at the same time: only the lists are locked.
static MODULES: List<Key, ModuleId> = Mutex::new(None);

/// Their kernels, by entry.
static KERNELS: List<(Key, String), KernelId> = Mutex::new(None);

/// What is made once.
fn once<K: Eq + Hash, T>(list: &List<K, T>, key: K) -> Once<T> {
    Arc::clone(list.lock().get_or_insert_default().entry(key).or_default())
}

impl Device {
    /// A kernel of a source, which is compiled if it is the first time.
    pub(crate) fn kernel(&self, source: &KernelSource, entry: &str) -> Result<KernelId, DriverError> {
        let key = (Arc::as_ptr(&self.driver).addr(), self.number.0, source.hash);
        let load = || self.driver.load(self.number, source.source());
        let make = || {
            let module = once(&MODULES, key).get_or_init(load).clone()?;
            self.driver.kernel(self.number, module, entry)
        };
        self.note(once(&KERNELS, (key, entry.to_owned())).get_or_init(make).clone())
    }
}
