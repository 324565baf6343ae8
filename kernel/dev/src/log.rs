//! kmsg: what programs write for the system's log. Reading it finds nothing.

use alloc::string::String;
use alloc::sync::Arc;

use mm::io::{Sink, Source};
use sync::Result;

use vfs::devices::{Device, register as add};
use vfs::file::{File, OpenFile};

/// The longest line taken at once (Linux's LOG_LINE_MAX).
const LINE_BYTES_MAX: usize = 992;

/// Adds /dev/kmsg.
pub fn register() {
    add(Device {
        name: "kmsg",
        major: 1,
        minors: (11, 11),
        mode: 0o600,
        open: |_, _| Ok(Arc::new(Log)),
    });
}

struct Log;

impl File for Log {
    fn read(&self, _open: &OpenFile, _to: &mut Sink<'_>) -> Result<usize> {
        Ok(0)
    }

    fn write(&self, _open: &OpenFile, from: &mut Source<'_>) -> Result<usize> {
        let mut line = [0; LINE_BYTES_MAX];
        let count = from.take_whole(&mut line)?;
        mach::klog!("{}", String::from_utf8_lossy(&line[..count]).trim_end());
        Ok(count)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}
