//! What minor versions add: tables of functions found by name.

use super::HostObject;
use super::wire::CallRef;
use abi_stable::StableAbi;
use abi_stable::std_types::RStr;
use abi_stable::type_layout::TypeLayout;

/// A table of functions behind a name. The name fixes its type for ever.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct RawExtension {
    /// Points to a static table.
    table: *const (),
}

impl RawExtension {
    /// Offers a table.
    pub fn new<T: Named>(table: &'static T) -> RawExtension {
        RawExtension { table: std::ptr::from_ref(table).cast() }
    }

    /// The table.
    ///
    /// # Safety
    /// The other side gave this extension when it was asked for [`Named::NAME`] of `T`, and the plugin passed the
    /// layout check when it was loaded.
    #[must_use]
    pub unsafe fn table<T: Named>(self) -> &'static T {
        // SAFETY: the caller vouches for the type; tables are static and libraries are never unloaded.
        unsafe { &*self.table.cast::<T>() }
    }
}

/// A table type and the name it goes by.
pub trait Named: StableAbi + 'static {
    /// Unique; a changed table gets a new name.
    const NAME: &'static str;
}

/// A name with the layout of its table, as one side knows it.
#[repr(C)]
#[derive(StableAbi, Clone, Copy)]
pub struct KnownExtension {
    /// The name.
    pub name: RStr<'static>,
    /// The layout.
    pub layout: &'static TypeLayout,
}

impl KnownExtension {
    /// What this side knows under the name of `T`.
    #[must_use]
    pub const fn of<T: Named>() -> KnownExtension {
        KnownExtension { name: RStr::from_str(T::NAME), layout: T::LAYOUT }
    }
}

/// Every extension that this version knows, offered by whichever side.
pub const KNOWN: &[KnownExtension] = &[KnownExtension::of::<HostLog>()];

/// Since 1.1, offered by the host: a component's words in the host's log.
#[repr(C)]
#[derive(StableAbi)]
pub struct HostLog {
    /// Notes a line. Levels are those of [`LogLevel`](crate::LogLevel).
    pub log: extern "C" fn(call: CallRef<'_>, node: u32, level: u32, line: RStr<'_>),
}

impl HostLog {
    /// The host's table, if it has one.
    pub(crate) fn of(host: &HostObject<'_>) -> Option<&'static HostLog> {
        let extension = host.extension(HostLog::NAME.into()).into_option()?;
        // SAFETY: it was asked for by the name of its type, and layouts were compared when the plugin was loaded.
        Some(unsafe { extension.table::<HostLog>() })
    }
}

impl Named for HostLog {
    const NAME: &'static str = "host-log/1";
}
