//! Flags of docker and podman that say what a machine is in any case, for lines that have them out of habit. Each takes only
//! the value that is true here.

use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args};

/// See the module.
#[derive(Clone, Debug, Default, Args)]
pub struct HabitFlags {
    /// Keep standard input open, for `sietch attach` with -d; it is so in the foreground
    #[arg(short = 'i', long)]
    pub interactive: bool,
    /// Give the program a terminal with -d; in the foreground it has one wherever standard input or output is one
    #[arg(short = 't', long)]
    pub tty: bool,
    /// Reap orphans and forward signals, as the machine's kernel does in any case
    #[arg(long)]
    pub init: bool,
    /// Pass signals on to the program, which is so in any case
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = ArgAction::Set,
        value_parser = PossibleValuesParser::new(["true"]))]
    pub sig_proxy: Option<String>,
    /// The namespace of shared memory: each machine has its own
    #[arg(long, value_parser = PossibleValuesParser::new(["private"]))]
    pub ipc: Option<String>,
    /// The namespace of processes: each machine has its own
    #[arg(long, value_parser = PossibleValuesParser::new(["private"]))]
    pub pid: Option<String>,
    /// The namespace of names: each machine has its own
    #[arg(long, value_parser = PossibleValuesParser::new(["private"]))]
    pub uts: Option<String>,
    /// The image's platform, of which there is one
    #[arg(long, value_parser = PossibleValuesParser::new(["linux/amd64", "linux/x86_64"]))]
    pub platform: Option<String>,
    /// The image's processor, of which there is one
    #[arg(long, value_parser = PossibleValuesParser::new(["amd64", "x86_64"]))]
    pub arch: Option<String>,
    /// The image's system, of which there is one
    #[arg(long, value_parser = PossibleValuesParser::new(["linux"]))]
    pub os: Option<String>,
    /// How images' volumes are mounted that -v does not name: in memory
    #[arg(long, value_parser = PossibleValuesParser::new(["tmpfs"]))]
    pub image_volume: Option<String>,
    /// Where the log goes: to a file that `sietch logs` shows
    #[arg(long, value_parser = PossibleValuesParser::new(["json-file", "local", "k8s-file"]))]
    pub log_driver: Option<String>,
}
