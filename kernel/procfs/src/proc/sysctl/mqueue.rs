//! `fs.mqueue`: how many message queues there may be, and how large (mq_overview(7)).

use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering};

use super::form;
use mqueue::limits::{
    MESSAGE_BYTES, MESSAGE_BYTES_LEAST, MESSAGE_BYTES_MOST, MESSAGE_BYTES_USUAL, MESSAGES,
    MESSAGES_MOST, MESSAGES_USUAL, QUEUES, QUEUES_MOST,
};
use vfs::pseudo::Entry;

/// A number within bounds.
macro_rules! limit {
    ($path:literal, $range:expr, $value:expr) => {
        Entry {
            path: concat!("sys/fs/mqueue/", $path),
            generate: |text| writeln!(text, "{}", AtomicU64::load(&$value, Ordering::Relaxed)),
            store: Some(|bytes| {
                $value.store(form::parse(bytes, $range)?, Ordering::Relaxed);
                Ok(())
            }),
        }
    };
}

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    limit!("msg_default", 1..=MESSAGES_MOST, MESSAGES_USUAL),
    limit!("msg_max", 1..=MESSAGES_MOST, MESSAGES),
    limit!(
        "msgsize_default",
        MESSAGE_BYTES_LEAST..=MESSAGE_BYTES_MOST,
        MESSAGE_BYTES_USUAL
    ),
    limit!(
        "msgsize_max",
        MESSAGE_BYTES_LEAST..=MESSAGE_BYTES_MOST,
        MESSAGE_BYTES
    ),
    limit!("queues_max", 0..=QUEUES_MOST, QUEUES),
];
