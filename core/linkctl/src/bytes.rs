//! Bytes in order: what every message is made of.
//!
//! Numbers are little-endian. A text is its length in 16 bits and UTF-8 without control
//! characters; a list is its length in 16 bits and its elements, each of at least one
//! byte, so that no list is longer than the message that holds it.

use alloc::string::String;
use alloc::vec::Vec;

use crate::{MESSAGE_BYTES_MAX, TEXT_BYTES_MAX};

/// In front of each message; another one is another protocol.
const VERSION: u8 = 1;

/// The bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed;

/// A message, a text or a list is longer than it may be, or a text has control characters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLong;

/// A message that is being written.
#[derive(Default)]
pub struct Writer {
    bytes: Vec<u8>,
    is_refused: bool,
}

impl Writer {
    /// The message.
    pub fn finish(self) -> Result<Vec<u8>, TooLong> {
        match self.is_refused {
            true => Err(TooLong),
            false => Ok(self.bytes),
        }
    }

    /// Adds bytes. From the first that do not fit on, nothing is added.
    pub fn put(&mut self, bytes: &[u8]) {
        self.is_refused |= self.bytes.len() + bytes.len() > MESSAGE_BYTES_MAX;
        if !self.is_refused {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn put_len(&mut self, len: usize) {
        match u16::try_from(len) {
            Ok(len) => self.put(&len.to_le_bytes()),
            Err(_) => self.is_refused = true,
        }
    }
}

/// A message that is being read.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// From its first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    /// That nothing is left.
    pub fn end(self) -> Result<(), Malformed> {
        self.0.is_empty().then_some(()).ok_or(Malformed)
    }

    fn take_len(&mut self) -> Result<usize, Malformed> {
        u16::get(self).map(usize::from)
    }
}

/// A value with a place in messages. What is read back equals what was written.
pub trait Coded: Sized {
    /// Writes it.
    fn put(&self, to: &mut Writer);
    /// Reads it.
    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed>;
}

macro_rules! numbers {
    ($($number:ty)*) => { $(
        impl Coded for $number {
            fn put(&self, to: &mut Writer) {
                to.put(&self.to_le_bytes());
            }

            fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
                let bytes = from.take(size_of::<Self>())?;
                bytes.try_into().map(Self::from_le_bytes).map_err(|_| Malformed)
            }
        }
    )* };
}

numbers!(u8 u16 u32 u64 u128);

impl Coded for bool {
    fn put(&self, to: &mut Writer) {
        u8::from(*self).put(to);
    }

    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        match u8::get(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }
}

impl Coded for String {
    fn put(&self, to: &mut Writer) {
        to.is_refused |= !is_text(self);
        to.put_len(self.len());
        to.put(self.as_bytes());
    }

    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = from.take_len()?;
        let text = core::str::from_utf8(from.take(len)?).map_err(|_| Malformed)?;
        is_text(text).then(|| text.into()).ok_or(Malformed)
    }
}

fn is_text(text: &str) -> bool {
    text.len() <= TEXT_BYTES_MAX && !text.chars().any(char::is_control)
}

impl<T: Coded> Coded for Option<T> {
    fn put(&self, to: &mut Writer) {
        self.is_some().put(to);
        if let Some(value) = self {
            value.put(to);
        }
    }

    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        bool::get(from)?.then(|| T::get(from)).transpose()
    }
}

impl<T: Coded> Coded for Vec<T> {
    fn put(&self, to: &mut Writer) {
        to.put_len(self.len());
        self.iter().for_each(|value| value.put(to));
    }

    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let len = from.take_len()?;
        (0..len).map(|_| T::get(from)).collect()
    }
}

impl<T: Coded + Copy + Default, const N: usize> Coded for [T; N] {
    fn put(&self, to: &mut Writer) {
        self.iter().for_each(|value| value.put(to));
    }

    fn get(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut values = [T::default(); N];
        for value in &mut values {
            *value = T::get(from)?;
        }
        Ok(values)
    }
}

/// A structure: its fields in order.
macro_rules! record {
    ($name:ty { $($field:ident),* $(,)? }) => {
        impl $crate::bytes::Coded for $name {
            fn put(&self, to: &mut $crate::bytes::Writer) {
                $( $crate::bytes::Coded::put(&self.$field, to); )*
            }

            fn get(
                from: &mut $crate::bytes::Reader<'_>,
            ) -> Result<Self, $crate::bytes::Malformed> {
                Ok(Self { $( $field: $crate::bytes::Coded::get(from)? ),* })
            }
        }
    };
}

/// An enum: a number for the variant, then what it holds.
macro_rules! choice {
    ($name:ty {
        $( $tag:literal => $variant:ident $( ( $($item:ident),* ) )? $( { $($field:ident),* } )? ),*
        $(,)?
    }) => {
        impl $crate::bytes::Coded for $name {
            fn put(&self, to: &mut $crate::bytes::Writer) {
                match self {
                    $( Self::$variant $( ( $($item),* ) )? $( { $($field),* } )? => {
                        to.put(&[$tag]);
                        $( $( $crate::bytes::Coded::put($item, to); )* )?
                        $( $( $crate::bytes::Coded::put($field, to); )* )?
                    } )*
                }
            }

            fn get(
                from: &mut $crate::bytes::Reader<'_>,
            ) -> Result<Self, $crate::bytes::Malformed> {
                Ok(match <u8 as $crate::bytes::Coded>::get(from)? {
                    $( $tag => {
                        $( $( let $item = $crate::bytes::Coded::get(from)?; )* )?
                        $( $( let $field = $crate::bytes::Coded::get(from)?; )* )?
                        Self::$variant $( ( $($item),* ) )? $( { $($field),* } )?
                    } )*
                    _ => return Err($crate::bytes::Malformed),
                })
            }
        }
    };
}

/// A whole message: its encoding begins with the protocol's version.
macro_rules! message {
    ($name:ty) => {
        impl $name {
            /// Its bytes. Fails if a text or a list in it is longer than it may be, or a
            /// text has control characters.
            pub fn encode(&self) -> Result<Vec<u8>, $crate::TooLong> {
                $crate::bytes::encode(self)
            }

            /// From its bytes, all of them.
            pub fn decode(bytes: &[u8]) -> Result<Self, $crate::Malformed> {
                $crate::bytes::decode(bytes)
            }
        }
    };
}

/// A message's bytes.
pub fn encode(message: &impl Coded) -> Result<Vec<u8>, TooLong> {
    let mut to = Writer::default();
    VERSION.put(&mut to);
    message.put(&mut to);
    to.finish()
}

/// A message from its bytes, all of them.
pub fn decode<T: Coded>(bytes: &[u8]) -> Result<T, Malformed> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(Malformed);
    }
    let mut from = Reader::new(bytes);
    if u8::get(&mut from)? != VERSION {
        return Err(Malformed);
    }
    let message = T::get(&mut from)?;
    from.end()?;
    Ok(message)
}

pub(crate) use {choice, message, record};
