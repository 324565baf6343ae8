//! Commands about machines by name: `ps`, `logs`, `wait`, `rm`, `inspect` and `port`.

use clap::Args;

/// `sietch ps`.
#[derive(Debug, Args)]
pub struct PsFlags {
    /// List machines that have ended, too
    #[arg(short = 'a', long)]
    pub all: bool,
    /// Print names only
    #[arg(short = 'q', long)]
    pub quiet: bool,
}

/// `sietch logs`.
#[derive(Debug, Args)]
pub struct LogsFlags {
    /// Keep on until the machine ends
    #[arg(short = 'f', long)]
    pub follow: bool,
    /// Show so many lines from the end only
    #[arg(short = 'n', long, value_name = "LINES")]
    pub tail: Option<usize>,
    /// The machine
    pub name: String,
}

/// `sietch wait`, `sietch inspect`: names of machines.
#[derive(Debug, Args)]
pub struct MachinesFlags {
    /// The machines
    #[arg(required = true)]
    pub names: Vec<String>,
}

/// `sietch rm`.
#[derive(Debug, Args)]
pub struct RmFlags {
    /// End machines that run, by force
    #[arg(short = 'f', long)]
    pub force: bool,
    /// The machines
    #[arg(required = true)]
    pub names: Vec<String>,
}

/// `sietch port`.
#[derive(Debug, Args)]
pub struct PortFlags {
    /// The machine
    pub name: String,
}
