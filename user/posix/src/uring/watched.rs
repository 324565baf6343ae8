//! Who waits for which socket of ours: a list for each number, both ways through the requests themselves, so that any of
//! thousands leaves at once.

use super::request::{Requests, Slot};

/// A number.
#[derive(Clone, Copy, Default, Debug)]
struct Watch {
    first: Option<Slot>,
    /// The world says when something happens to it.
    is_watched: bool,
}

/// See the module.
#[derive(Default, Debug)]
pub struct Watched(Vec<Watch>);

impl Watched {
    fn get_mut(&mut self, number: i32) -> Option<&mut Watch> {
        self.0.get_mut(usize::try_from(number).ok()?)
    }

    /// Whether the world has to be asked to say when something happens.
    pub fn is_watched(&self, number: i32) -> bool {
        let watch = usize::try_from(number).ok().and_then(|at| self.0.get(at));
        watch.is_some_and(|watch| watch.is_watched)
    }

    /// It does, or does not any more.
    pub fn set_watched(&mut self, number: i32, is_watched: bool) {
        let Ok(at) = usize::try_from(number) else {
            return;
        };
        if self.0.len() <= at {
            self.0.resize(at + 1, Watch::default());
        }
        self.0[at].is_watched = is_watched;
    }

    /// A request waits for a number that is watched.
    pub fn push(&mut self, number: i32, slot: Slot, requests: &mut Requests) {
        let Some(watch) = self.get_mut(number) else {
            return;
        };
        if let Some(request) = requests.get_mut(slot)
            && request.waits_for.is_none()
        {
            request.waits_for = Some(number);
            request.next_waiting = watch.first.replace(slot);
            let next = request.next_waiting;
            if let Some(next) = next.and_then(|next| requests.get_mut(next)) {
                next.previous_waiting = Some(slot);
            }
        }
    }

    /// One that waits no longer.
    pub fn pop(&mut self, number: i32, requests: &mut Requests) -> Option<Slot> {
        let slot = self.get_mut(number)?.first?;
        self.remove(slot, requests);
        Some(slot)
    }

    /// It waits no longer.
    pub fn remove(&mut self, slot: Slot, requests: &mut Requests) {
        let Some(request) = requests.get_mut(slot) else {
            return;
        };
        let Some(number) = request.waits_for.take() else {
            return;
        };
        let next = request.next_waiting.take();
        let previous = request.previous_waiting.take();
        if let Some(next) = next.and_then(|next| requests.get_mut(next)) {
            next.previous_waiting = previous;
        }
        match previous.and_then(|previous| requests.get_mut(previous)) {
            Some(previous) => previous.next_waiting = next,
            None => {
                if let Some(watch) = self.get_mut(number) {
                    watch.first = next;
                }
            }
        }
    }
}
