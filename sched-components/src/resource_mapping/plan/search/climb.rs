//! Moves of single tasks that make the best plan better, as far as rehearsals tell.
//!
//! An attempt is made of as many of them as help, one after the other, before it is executed event by event: what all
//! transfers take to each other's disadvantage is found out for all moves together.

use super::examiner::Examiner;
use super::standing::Standing;
use crate::resource_mapping::plan::dice::Dice;
use crate::resource_mapping::plan::samples::Move;

/// Number of moves that are tried, and of those that an attempt is made of at most: what a rehearsal tells of transfers
/// is less true after each of them.
const TRIED: usize = 64;
const MADE: usize = 8;

impl Examiner {
    /// Moves that make the best plan better in the mean of the draws. If none does, any: an execution knows more.
    pub(super) fn climb(&mut self, standing: &Standing<'_>, mut dice: Dice) -> Vec<Move> {
        let Examiner { preview, scratch, .. } = self;
        let Standing { outlook, samples, best, open, number, .. } = standing;
        let (mut made, mut first, mut count) = (Vec::new(), Vec::new(), 0);
        if !preview.show(*number, samples, outlook, best, scratch) {
            return Vec::new();
        }
        for _ in 0..TRIED {
            let moves = Move::draw(outlook, open, preview.lanes(), standing.length(), &mut dice);
            if preview.make(samples, outlook, &moves) {
                made.extend(moves);
                count += 1;
            } else if first.is_empty() {
                first = moves;
            }
            if count == MADE || scratch.stop.is_set() {
                break;
            }
        }
        if made.is_empty() { first } else { made }
    }
}
