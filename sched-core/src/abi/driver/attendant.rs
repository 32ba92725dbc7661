//! Calls of a driver, as they begin and end.

/// A call of a driver that a host makes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
#[repr(u8)]
pub enum DriverCall {
    /// Its constructor, [`Driver::open`](crate::driver::Driver::open).
    Open,
    /// [`devices`](crate::driver::Driver::devices).
    Devices,
    /// [`remarks`](crate::driver::Driver::remarks).
    Remarks,
    /// [`allocate`](crate::driver::Driver::allocate).
    Allocate,
    /// [`free`](crate::driver::Driver::free).
    Free,
    /// [`copy_in`](crate::driver::Driver::copy_in).
    CopyIn,
    /// [`copy_out`](crate::driver::Driver::copy_out).
    CopyOut,
    /// [`copy_across`](crate::driver::Driver::copy_across).
    CopyAcross,
    /// [`load`](crate::driver::Driver::load).
    Load,
    /// [`kernel`](crate::driver::Driver::kernel).
    Kernel,
    /// [`launch`](crate::driver::Driver::launch).
    Launch,
    /// [`mark`](crate::driver::Driver::mark).
    Mark,
    /// [`poll`](crate::driver::Driver::poll).
    Poll,
    /// [`wait`](crate::driver::Driver::wait).
    Wait,
    /// [`raw`](crate::driver::Driver::raw).
    Raw,
    /// [`begin_span`](crate::driver::Driver::begin_span).
    BeginSpan,
    /// [`end_span`](crate::driver::Driver::end_span).
    EndSpan,
    /// [`pin`](crate::driver::Driver::pin).
    Pin,
    /// [`unpin`](crate::driver::Driver::unpin).
    Unpin,
}

impl DriverCall {
    /// All of them.
    pub const ALL: [DriverCall; 19] = [
        DriverCall::Open,
        DriverCall::Devices,
        DriverCall::Remarks,
        DriverCall::Allocate,
        DriverCall::Free,
        DriverCall::CopyIn,
        DriverCall::CopyOut,
        DriverCall::CopyAcross,
        DriverCall::Load,
        DriverCall::Kernel,
        DriverCall::Launch,
        DriverCall::Mark,
        DriverCall::Poll,
        DriverCall::Wait,
        DriverCall::Raw,
        DriverCall::BeginSpan,
        DriverCall::EndSpan,
        DriverCall::Pin,
        DriverCall::Unpin,
    ];

    /// Name of the method.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            DriverCall::Open => "open",
            DriverCall::Devices => "devices",
            DriverCall::Remarks => "remarks",
            DriverCall::Allocate => "allocate",
            DriverCall::Free => "free",
            DriverCall::CopyIn => "copy_in",
            DriverCall::CopyOut => "copy_out",
            DriverCall::CopyAcross => "copy_across",
            DriverCall::Load => "load",
            DriverCall::Kernel => "kernel",
            DriverCall::Launch => "launch",
            DriverCall::Mark => "mark",
            DriverCall::Poll => "poll",
            DriverCall::Wait => "wait",
            DriverCall::Raw => "raw",
            DriverCall::BeginSpan => "begin_span",
            DriverCall::EndSpan => "end_span",
            DriverCall::Pin => "pin",
            DriverCall::Unpin => "unpin",
        }
    }
}

/// Follows the calls of a [driver that is open](super::OpenedDriver), so that one which does not come back, or ends the
/// process, can be named. Called on the thread that calls the driver.
pub trait Attendant: Send + Sync + 'static {
    /// The thread is about to make this call.
    fn begin(&self, call: DriverCall);

    /// The call has come back that the thread began last.
    fn end(&self);
}

/// While it lives, the thread is inside a call.
pub(super) struct Attended<'a>(Option<&'a dyn Attendant>);

impl<'a> Attended<'a> {
    pub(super) fn new(attendant: Option<&'a dyn Attendant>, call: DriverCall) -> Attended<'a> {
        if let Some(attendant) = attendant {
            attendant.begin(call);
        }
        Attended(attendant)
    }
}

impl Drop for Attended<'_> {
    fn drop(&mut self) {
        if let Some(attendant) = self.0 {
            attendant.end();
        }
    }
}
