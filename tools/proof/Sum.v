(** Sums over the first [n] naturals, and what follows if one sum is at most another. *)

From Coq Require Import ZArith Lia List.
Open Scope Z_scope.

Fixpoint sum (n : nat) (f : nat -> Z) : Z :=
  match n with
  | O => 0
  | S k => sum k f + f k
  end.

Lemma sum_ext : forall n f g, (forall i, (i < n)%nat -> f i = g i) -> sum n f = sum n g.
Proof.
  induction n as [|n IH]; intros f g H; cbn; [reflexivity|].
  rewrite (IH f g), (H n) by (auto with arith || lia). reflexivity.
Qed.

Lemma sum_le : forall n f g, (forall i, (i < n)%nat -> f i <= g i) -> sum n f <= sum n g.
Proof.
  induction n as [|n IH]; intros f g H; cbn; [lia|].
  specialize (IH f g ltac:(auto with arith)). specialize (H n ltac:(lia)). lia.
Qed.

Lemma sum_lt : forall n f g i, (forall j, (j < n)%nat -> f j <= g j) -> (i < n)%nat -> f i < g i -> sum n f < sum n g.
Proof.
  induction n as [|n IH]; intros f g i H Hi Hlt; cbn; [lia|].
  destruct (Nat.eq_dec i n) as [->|Hne].
  - pose proof (sum_le n f g ltac:(auto with arith)). lia.
  - specialize (IH f g i ltac:(auto with arith) ltac:(lia) Hlt). specialize (H n ltac:(lia)). lia.
Qed.

Lemma sum_plus : forall n f g, sum n (fun i => f i + g i) = sum n f + sum n g.
Proof. induction n; intros; cbn; [reflexivity|]. rewrite IHn. lia. Qed.

Lemma sum_nonneg : forall n f, (forall i, (i < n)%nat -> 0 <= f i) -> 0 <= sum n f.
Proof.
  induction n as [|n IH]; intros f H; cbn; [lia|].
  specialize (IH f ltac:(auto with arith)). specialize (H n ltac:(lia)). lia.
Qed.

(** One of the first [n] gets less if another gets more and the sum does not grow. *)
Lemma sum_witness : forall n f g i,
  (i < n)%nat -> g i < f i -> sum n f <= sum n g -> exists j, (j < n)%nat /\ f j < g j.
Proof.
  intros n f g i Hi Hlt Hsum.
  assert (D : (exists j, (j < n)%nat /\ f j < g j) \/ forall j, (j < n)%nat -> g j <= f j).
  { clear. induction n as [|n [[j [Hj H]]|IH]].
    - right. lia.
    - left. exists j. lia.
    - destruct (Z_lt_le_dec (f n) (g n)) as [H|H].
      + left. exists n. lia.
      + right. intros j Hj. destruct (Nat.eq_dec j n) as [->|]; [exact H|apply IH; lia]. }
  destruct D as [D|D]; [exact D|].
  pose proof (sum_lt n g f i D Hi Hlt). lia.
Qed.

(** One unit more at one place. *)
Definition one_more (e : nat -> Z) (k : nat) : nat -> Z := fun i => if Nat.eqb i k then e i + 1 else e i.

Lemma one_more_same : forall e k, one_more e k k = e k + 1.
Proof. intros. unfold one_more. rewrite Nat.eqb_refl. reflexivity. Qed.

Lemma one_more_other : forall e k i, i <> k -> one_more e k i = e i.
Proof. intros e k i H. unfold one_more. apply Nat.eqb_neq in H. rewrite H. reflexivity. Qed.

Lemma one_more_sum : forall n e k, (k < n)%nat -> sum n (one_more e k) = sum n e + 1.
Proof.
  induction n as [|n IH]; intros e k H; [lia|]. cbn.
  destruct (Nat.eq_dec k n) as [->|Hne].
  - rewrite one_more_same. rewrite (sum_ext n (one_more e n) e); [lia|].
    intros. apply one_more_other. lia.
  - rewrite IH, one_more_other by lia. lia.
Qed.
