//! Images that are composed here, fetched, unpacked and refused.

mod bad;
mod disk;
mod store;
mod support;
