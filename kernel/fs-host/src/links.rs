//! The devices of the machine, and what each has served.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use mach::sync::Spin;
use sched::{Softirq, Work, register_softirq};
use vfs::pseudo::Text;

use crate::link::{Carrier, Figures, Link};

/// A link, whatever protocol it carries.
trait AnyLink: Send + Sync {
    fn complete(&self);
    fn figures(&self) -> Figures;
}

impl<C: Carrier> AnyLink for Link<C> {
    fn complete(&self) {
        Link::complete(self);
    }

    fn figures(&self) -> Figures {
        Link::figures(self)
    }
}

/// All links, which are the machine's devices.
static LINKS: Spin<Vec<Arc<dyn AnyLink>>> = Spin::new(Vec::new());

/// Takes a link whose interrupt raises [`Softirq::Volume`]; at boot.
pub fn attach<C: Carrier + 'static>(link: Arc<Link<C>>) {
    LINKS.lock().push(link);
    register_softirq(
        Softirq::Volume,
        Work {
            run: complete_all,
            // Replies raise an interrupt as soon as a request is sent.
            look: None,
        },
    );
}

fn links() -> Vec<Arc<dyn AnyLink>> {
    LINKS.lock().clone()
}

fn complete_all() {
    links().iter().for_each(|link| link.complete());
}

/// /proc/volumes: what each folder has served. Times are nanoseconds; FULL counts looks that
/// found no free tag.
pub fn figures(text: &mut Text) -> fmt::Result {
    writeln!(text, "REQUESTS BUSY WAITED FULL FAILED NAME")?;
    for link in links() {
        let figures = link.figures();
        let served = figures.served;
        let (requests, busy_ns, waited_ns) = (served.requests, served.busy_ns, served.waited_ns);
        let name = String::from_utf8_lossy(&figures.name).replace(char::is_control, "?");
        let (full, failed) = (figures.full, figures.failed);
        writeln!(
            text,
            "{requests} {busy_ns} {waited_ns} {full} {failed} {name}"
        )?;
    }
    Ok(())
}
