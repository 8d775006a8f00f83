(** Examples: what the theorems speak of exists, and what they do not claim is not so. *)

From Coq Require Import ZArith Lia List Bool.
From Proof Require Import Sum Webster Certificate Accepted Monotone.
Import ListNotations.
Open Scope Z_scope.

Definition sibling_of (name lo hi weight : Z) : sibling :=
  {| name := name; lo := lo; m := lo; hi := hi; guarantee := lo; deserved := lo; wants := weight |}.
Definition listed (q : question) : list Z := map (webster q) (seq 0 (size q)).

(** Eight GPUs and three equal queues: 3, 3, 2, as testdata/field/eight-gpus.yaml says. *)
Example eight : listed (asked false (map (fun k => sibling_of k 0 8 1) [0; 1; 2]) 8) = [3; 3; 2].
Proof. reflexivity. Qed.

(** Ten cores, a guarantee of six, by the three bases: docs/fair.md, Which base (in tenths of a core). *)
Example base_none : listed (asked false [sibling_of 0 60 100 1; sibling_of 1 0 100 1; sibling_of 2 0 100 1] 100) = [60; 20; 20].
Proof. reflexivity. Qed.
Example base_guarantee : listed (asked true [sibling_of 0 60 100 1; sibling_of 1 0 100 1; sibling_of 2 0 100 1] 100) = [74; 13; 13].
Proof. reflexivity. Qed.

(** A queue of weight 5 has one of two units. Split into brothers of weights 2 and 3, it has both: one more, which t4_split allows. *)
Definition whole : list sibling := [sibling_of 0 0 2 5; sibling_of 1 0 2 2].
Definition parts : list sibling := [sibling_of 0 0 1 2; sibling_of 1 0 2 2; sibling_of 2 0 1 3].

Example whole_gets : listed (asked false whole 2) = [1; 1].
Proof. reflexivity. Qed.
Example parts_get : listed (asked false parts 2) = [1; 0; 1].
Proof. reflexivity. Qed.

Example a_split : split (asked false whole 2) (asked false parts 2) 0 0 2 (fun j => j).
Proof.
  split; try reflexivity.
  - cbn. lia.
  - cbn. intros j Hj Hne. lia.
  - intros f. cbn. lia.
  - intros k [-> | ->]; reflexivity.
  - cbn. intros j Hj Hne. assert (j = 1%nat) as -> by lia. auto.
Qed.

(** With base NONE a guarantee lifts its queue above the weight's part. If one brother takes all of the guarantee and half of the weight, the
    other is not lifted and gets a part by weight as well: 20 of 30 in place of 15. So t4_split demands that what is lifted is divided as the
    weight is. With base GUARANTEE nothing is lifted. *)
Example whole_with_guarantee : listed (asked false [sibling_of 0 15 60 2; sibling_of 1 0 30 2] 30) = [15; 15].
Proof. reflexivity. Qed.
Example parts_with_guarantee : listed (asked false [sibling_of 0 15 30 1; sibling_of 1 0 30 2; sibling_of 2 0 30 1] 30) = [15; 10; 5].
Proof. reflexivity. Qed.
