//! `--cloud-init`: whom a machine of a built disk asks for its name, addresses, keys and files.

use clap::ValueEnum;

/// What is asked before the program starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum CloudInit {
    /// Nothing
    None,
    /// A disk labelled cidata (NoCloud), if there is one
    #[default]
    Seed,
    /// Such a disk, and without one the cloud's metadata service at 169.254.169.254, for 8 seconds at most
    Metadata,
}
