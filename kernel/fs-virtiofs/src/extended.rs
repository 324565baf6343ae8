//! Extended attributes, which are those of the host's inodes.

use alloc::vec::Vec;

use fuse::Request;
use sync::{Error, Result};
use vfs::extended::{Expect, Extended, LIST_BYTES_MAX, VALUE_BYTES_MAX};

use crate::answer::Answer;
use crate::inode::Inode;

/// setxattr(2)'s flags.
const CREATE: u32 = 1;
const REPLACE: u32 = 2;

impl Inode {
    /// A daemon that was told to know none does not know the request.
    fn ask_of_attributes(&self, request: Request<'_>) -> Result<Answer> {
        self.call(request).map_err(|error| match error {
            Error::NotImplemented => Error::Unsupported,
            error => error,
        })
    }

    fn bytes_of_attributes(&self, request: Request<'_>) -> Result<Vec<u8>> {
        match self.ask_of_attributes(request)? {
            Answer::Data(bytes) => Ok(bytes),
            _ => Err(Error::Io),
        }
    }
}

impl Extended for Inode {
    fn get(&self, name: &[u8]) -> Result<Vec<u8>> {
        let count = VALUE_BYTES_MAX as u32;
        self.bytes_of_attributes(Request::Getxattr { name, count })
    }

    fn set(&self, name: &[u8], value: &[u8], expect: Expect) -> Result<()> {
        let flags = match expect {
            Expect::Any => 0,
            Expect::Absent => CREATE,
            Expect::Present => REPLACE,
        };
        self.ask_of_attributes(Request::Setxattr { name, value, flags })
            .map(drop)
    }

    fn remove(&self, name: &[u8]) -> Result<()> {
        self.ask_of_attributes(Request::Removexattr { name })
            .map(drop)
    }

    fn list(&self) -> Result<Vec<u8>> {
        let count = LIST_BYTES_MAX as u32;
        self.bytes_of_attributes(Request::Listxattr { count })
    }
}
