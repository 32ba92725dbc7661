//! Exports a driver from a library, which makes it a plugin.

/// Makes a library a plugin that offers a [`Driver`](crate::driver::Driver). Write it once, in the root of a crate of
/// type `cdylib`.
///
/// ```
/// # mod nothing {
/// use sched_core::driver::*;
///
/// struct Nothing;
///
/// impl Driver for Nothing {
///     const INFO: DriverInfo = DriverInfo::new("nothing", sched_core::Arch::FPGA, "Has no devices.");
///     fn open() -> Result<Nothing, DriverError> { Ok(Nothing) }
///     fn devices(&self) -> Vec<DeviceInfo> { Vec::new() }
///     // …
/// #   fn allocate(&self, _: DeviceNumber, _: u64) -> Result<BufferId, DriverError> { unreachable!() }
/// #   fn free(&self, _: DeviceNumber, _: BufferId) {}
/// #   fn copy_in(&self, _: HostMemory, _: DeviceMemory, _: Rows, _: Order<'_>) -> Result<Token, DriverError> { unreachable!() }
/// #   fn copy_out(&self, _: DeviceMemory, _: HostMemory, _: Rows, _: Order<'_>) -> Result<Token, DriverError> { unreachable!() }
/// #   fn load(&self, _: DeviceNumber, _: Source<'_>) -> Result<ModuleId, DriverError> { unreachable!() }
/// #   fn kernel(&self, _: DeviceNumber, _: ModuleId, _: &str) -> Result<KernelId, DriverError> { unreachable!() }
/// #   fn launch(&self, _: DeviceNumber, _: Launch<'_>, _: Order<'_>) -> Result<Token, DriverError> { unreachable!() }
/// #   fn mark(&self, _: DeviceNumber, _: u32) -> Result<Token, DriverError> { unreachable!() }
/// #   fn poll(&self, _: DeviceNumber, _: Token) -> Result<Option<Finished>, DriverError> { unreachable!() }
/// #   fn wait(&self, _: DeviceNumber, _: Token) -> Result<Finished, DriverError> { unreachable!() }
/// }
///
/// sched_core::export_driver!(Nothing);
/// # }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export_driver {
    ($driver:ty) => {
        #[doc(hidden)]
        pub mod __sched_plugin {
            // The glob makes the named type visible here even if it is private to the crate's root.
            #[allow(unused_imports)]
            use super::*;

            #[unsafe(no_mangle)]
            #[used]
            pub static SCHED_PLUGIN_STAMP: $crate::abi::Stamp =
                $crate::abi::Stamp::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"), cfg!(panic = "unwind"));

            extern "C" fn manifest() -> $crate::export::ManifestResult {
                $crate::export::manifest(&[])
            }

            extern "C" fn build(
                name: $crate::export::Name<'_>,
                params: $crate::export::RawParams<'_>,
            ) -> $crate::export::BuildResult {
                $crate::export::build(&[], name, params)
            }

            static ROOT: $crate::abi::Root =
                $crate::abi::Root { manifest, build, extensions: $crate::export::extensions };

            #[unsafe(no_mangle)]
            pub extern "C" fn sched_plugin_entry_v1() -> $crate::abi::root::Entry {
                $crate::export::quiet_panics();
                $crate::abi::root::Entry::new(&ROOT)
            }

            static DRIVER: $crate::abi::driver::DriverRoot = $crate::abi::driver::root_of::<$driver>();

            #[unsafe(no_mangle)]
            pub extern "C" fn sched_driver_entry_v1() -> $crate::abi::driver::DriverEntry {
                $crate::abi::driver::DriverEntry::new(&DRIVER)
            }
        }
    };
}
