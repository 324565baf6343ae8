//! Virtual functions of an NVMe controller: each has a namespace that its program drives itself (`docs/vsa.md`).

use std::path::Path;

use crate::Test;
use crate::build;
use crate::disks::{self, Image};
use crate::guest::{BOOT_PATIENCE, Setup};
use crate::status::expect_status;

/// The tests, for one CPU and for several.
pub const TESTS: &[Test] = &[
    (
        "programs move blocks on NVMe virtual functions of their own, beside the kernel's disk",
        |setup| {
            let machine = Functions::new("nvme-vf-blocks")?;
            machine.runs(setup, SIDE_BY_SIDE)?;
            machine.disks[1].expect_at(0, &[7; 4096])?;
            machine.disks[2].expect_at(4096, &[38; 4096])
        },
    ),
    (
        "a program on an NVMe virtual function reaches no blocks, memory or queues but its own",
        |setup| {
            let machine = Functions::new("nvme-vf-confined")?;
            let console = machine.runs(setup, CONFINED)?;
            machine.disks[0].expect_at(0, &[b'k'; 1 << 20])?;
            machine.disks[0].expect_at(1 << 20, &[0; 3 << 20])?;
            // The neighbour writes before that.
            machine.disks[2].expect_at(2 << 20, &[0; 10 << 20])?;
            match console.contains("The IOMMU refused the device") {
                true => Ok(()),
                false => Err(format!("nobody was told: {console}")),
            }
        },
    ),
];

/// What one CPU more or less changes nothing of.
pub const TESTS_ONCE: &[Test] = &[(
    "Debian's nvme gives namespaces to virtual functions, resets one, and touches no other",
    |setup| {
        let machine = Functions::new("nvme-vf-ruled")?;
        machine.runs(setup, RULED).map(drop)
    },
)];

const PROGRAM: &str = "tests/programs/scenes/nvme_function.c";

/// A machine with a disk of the kernel's and two virtual functions, each with a namespace.
struct Functions {
    disks: [Image; 3],
}

impl Functions {
    fn new(name: &str) -> Result<Self, String> {
        let disk = |number: u64| Image::new(&format!("{name}-{number}"), number << 22);
        Ok(Self {
            disks: [disk(1)?, disk(2)?, disk(3)?],
        })
    }

    /// Runs a script that knows the functions as `$1` and `$2`; what the console shows.
    fn runs(&self, setup: &Setup, script: &str) -> Result<String, String> {
        let flag = |(number, disk): (usize, &Image)| match number {
            0 => disk.flag(",bus=nvme"),
            number => disk.flag(&format!(",bus=nvme,vf={number}")),
        };
        let disks: Vec<_> = self.disks.iter().enumerate().map(flag).collect();
        let blocks = build::example("sietch-io", "blocks")?;
        let tries = build::c(Path::new(PROGRAM))?;
        let adds = [
            format!("{}:/blocks", blocks.display()),
            format!("{}:/confined", tries.display()),
        ];
        let mut flags = vec!["--iommu", "--memory", "512M"];
        flags.extend(disks.iter().map(String::as_str));
        flags.extend(adds.iter().flat_map(|add| ["--add", add]));
        let end = disks::start(setup, &flags, &format!("{FIND}{script}"))?;
        let end = end.wait(BOOT_PATIENCE)?;
        expect_status(&end, 0)?;
        Ok(end.console)
    }
}

/// Functions of the class of NVMe that no driver of the kernel has.
const FIND: &str = "set -e; fails() { ! \"$@\"; }
set -- $(for f in /sys/bus/pci/devices/*; do
  if test $(cat $f/class) = 0x010802 && test -e $f/driver; then basename $f; fi; done)
test $# = 2
";

const SIDE_BY_SIDE: &str = "test ! -e /dev/nvme0n2
/blocks $1 check 1 200 > /tmp/first & first=$!
/blocks $2 check 1 200 > /tmp/second & second=$!
dd if=/dev/urandom of=/tmp/r bs=64k count=32 2> /dev/null
dd if=/tmp/r of=/dev/nvme0n1 bs=64k oflag=direct 2> /dev/null
cmp -n 2097152 /tmp/r /dev/nvme0n1
wait $first; wait $second; cat /tmp/first /tmp/second; grep -q 'check 200' /tmp/first; grep -q 'check 200' /tmp/second
/blocks $1 read 32 3000; /blocks $1 write 1 20; /blocks $1 check 1 20; /blocks $2 check 1 200
/blocks $1 idle 1 300 > /tmp/log; test $(sed 's/.*: \\([0-9]*\\) waits.*/\\1/' /tmp/log) -ge 300
/blocks $1 idle 32 3000
fails /blocks 0000:00:00.0 check 1 1 2> /dev/null
setpriv --reuid 1000 --clear-groups /blocks $1 check 1 1 2> /tmp/log && exit 1; grep -q denied /tmp/log";

const CONFINED: &str = "/blocks $1 check 1 50; /blocks $2 check 1 50
head -c 1048576 /dev/zero | tr '\\0' k > /tmp/r; dd if=/tmp/r of=/dev/nvme0n1 bs=64k oflag=direct 2> /dev/null
/confined $1 $2
dd if=/dev/nvme0n1 of=/tmp/now bs=64k count=16 iflag=direct 2> /dev/null; cmp /tmp/r /tmp/now";

const RULED: &str = "disk=/dev/nvme0n1
nvme list-secondary $disk > /tmp/log; test $(grep -c Online /tmp/log) = 2
/blocks $1 check 1 20; /blocks $2 check 1 20
nvme detach-ns $disk -n 3 -c 2; fails /blocks $2 read 1 1 2> /tmp/log; grep -q NoNamespace /tmp/log
nvme attach-ns $disk -n 3 -c 1 && /blocks $1 check 1 20; nvme detach-ns $disk -n 3 -c 1
nvme attach-ns $disk -n 3 -c 2; /blocks $2 check 1 20
/blocks $2 check 1 1500 > /tmp/second &
nvme virt-mgmt $disk -c 1 -a 7; fails /blocks $1 read 1 1 2> /tmp/log
nvme list-secondary $disk > /tmp/log; test $(grep -c Online /tmp/log) = 1
nvme virt-mgmt $disk -c 1 -r 0 -n 2 -a 8; nvme virt-mgmt $disk -c 1 -r 1 -n 1 -a 8
nvme virt-mgmt $disk -c 1 -a 9; /blocks $1 check 1 20
wait $!; grep -q 'check 1500' /tmp/second
fails nvme detach-ns $disk -n 1 -c 0; fails nvme attach-ns $disk -n 1 -c 1; fails nvme virt-mgmt $disk -c 0 -a 7
fails nvme virt-mgmt $disk -c 0 -r 0 -n 2 -a 1; fails nvme attach-ns $disk -n 3 -c 9
chmod 666 $disk; fails setpriv --reuid 1000 --clear-groups nvme detach-ns $disk -n 2 -c 1
/blocks $1 check 1 20; dd if=$disk of=/dev/null bs=64k count=4 iflag=direct 2> /dev/null";
