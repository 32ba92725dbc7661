//! What a thread said when it panicked: the others are to learn it.

use std::cell::RefCell;
use std::panic;
use std::sync::Once;

thread_local! {
    static WORDS: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// From now on, the message of a panic is kept beside whatever else is done with it.
pub(crate) fn heed() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let place = info.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
            let said = info.payload_as_str().unwrap_or("it said nothing");
            // A thread that ends has no place for words any more.
            let _ = WORDS.try_with(|words| words.replace(Some(format!("{said}{}", place.unwrap_or_default()))));
            before(info);
        }));
    });
}

/// The message of the last panic of this thread.
pub(crate) fn of_this_thread() -> Option<String> {
    WORDS.take()
}
