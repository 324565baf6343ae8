//! The way to the kernel: a file that takes requests and gives answers.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};

use linkctl::{Answer, DEVICE, MESSAGE_BYTES_MAX, Request};

use crate::Kernel;

/// A file of which one `write` takes a request and the next `read` gives its answer.
pub struct Device<F>(F);

/// The kernel's device, opened when the first request is made: help needs no kernel.
#[derive(Default)]
pub struct SystemDevice(Option<Device<File>>);

impl Kernel for SystemDevice {
    fn call(&mut self, request: &Request) -> Result<Answer, String> {
        if let Some(device) = &mut self.0 {
            return device.call(request);
        }
        let file = OpenOptions::new().read(true).write(true).open(DEVICE);
        let file = file.map_err(|why| format!("{DEVICE} cannot be opened: {why}"))?;
        self.0.insert(Device(file)).call(request)
    }
}

impl<F: Read + Write> Device<F> {
    /// Over any such file.
    pub fn new(file: F) -> Self {
        Self(file)
    }

    fn exchange(&mut self, request: &[u8]) -> std::io::Result<Vec<u8>> {
        let written = self.0.write(request)?;
        if written != request.len() {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        let mut answer = vec![0; MESSAGE_BYTES_MAX];
        let len = self.0.read(&mut answer)?;
        answer.truncate(len);
        Ok(answer)
    }
}

impl<F: Read + Write> Kernel for Device<F> {
    fn call(&mut self, request: &Request) -> Result<Answer, String> {
        let too_long = |_| "a value is too long or has control characters".to_string();
        let bytes = request.encode().map_err(too_long)?;
        let answer = self.exchange(&bytes);
        let answer = answer.map_err(|why| format!("{DEVICE}: {why}"))?;
        Answer::decode(&answer).map_err(|_| "the kernel speaks another protocol".into())
    }
}
