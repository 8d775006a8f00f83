(** Webster's method with bounds, in whole units: the division that docs/fair.md states, by its procedure, and that nothing else is stable. *)

From Coq Require Import ZArith Lia List Bool.
From Proof Require Import Sum.
Open Scope Z_scope.

(** What is divided among [size] children, in the order of their rank. A child without a weight gets [start], whatever its ceiling is. *)
Record question := {
  size : nat;
  weight : nat -> Z;
  start : nat -> Z;
  ceiling : nat -> Z;
  base : nat -> Z;
  amount : Z
}.

Definition top (q : question) (i : nat) : Z := if weight q i =? 0 then start q i else ceiling q i.

Definition sound (q : question) : Prop :=
  (forall i, (i < size q)%nat -> 0 <= weight q i /\ start q i <= ceiling q i) /\ sum (size q) (start q) <= amount q.

(** As much as there is, or as the children can use. *)
Definition handed (q : question) : Z := Z.min (amount q) (sum (size q) (top q)).

(** The [k]-th unit of child [i] has the signpost (k - base - 1/2) / weight, where [k] counts from 1. Unit [k] of [i] comes before unit [l] of
    [j] if its signpost is smaller, or equal and [i] has the better rank. *)
Definition odd (q : question) (i : nat) (k : Z) : Z := 2 * (k - base q i) - 1.

Definition before (q : question) (i : nat) (k : Z) (j : nat) (l : Z) : Prop :=
  odd q i k * weight q j < odd q j l * weight q i \/ odd q i k * weight q j = odd q j l * weight q i /\ (i < j)%nat.

Definition before_b (q : question) (i : nat) (k : Z) (j : nat) (l : Z) : bool :=
  (odd q i k * weight q j <? odd q j l * weight q i)
  || ((odd q i k * weight q j =? odd q j l * weight q i) && Nat.ltb i j).

Lemma before_spec : forall q i k j l, before_b q i k j l = true <-> before q i k j l.
Proof.
  intros. unfold before_b, before.
  rewrite orb_true_iff, andb_true_iff, Z.ltb_lt, Z.eqb_eq, Nat.ltb_lt. reflexivity.
Qed.

(** The procedure: while something is left, one unit goes to the child below its top whose next unit comes first. *)
Fixpoint first (q : question) (e : nat -> Z) (children : list nat) : option nat :=
  match children with
  | nil => None
  | i :: rest =>
      if e i <? top q i then
        match first q e rest with
        | Some j => if before_b q j (e j + 1) i (e i + 1) then Some j else Some i
        | None => Some i
        end
      else first q e rest
  end.

Fixpoint hand_out (q : question) (units : nat) (e : nat -> Z) : nat -> Z :=
  match units with
  | O => e
  | S n =>
      match first q e (seq 0 (size q)) with
      | Some i => hand_out q n (one_more e i)
      | None => e
      end
  end.

Definition webster (q : question) : nat -> Z := hand_out q (Z.to_nat (handed q - sum (size q) (start q))) (start q).

(** No unit that was given comes after one that was not. *)
Definition within (q : question) (e : nat -> Z) : Prop := forall i, (i < size q)%nat -> start q i <= e i <= top q i.

Definition stable (q : question) (e : nat -> Z) : Prop :=
  forall i j, (i < size q)%nat -> (j < size q)%nat -> i <> j -> start q i < e i -> e j < top q j -> before q i (e i) j (e j + 1).

Definition division (q : question) (e : nat -> Z) : Prop := within q e /\ stable q e /\ sum (size q) e = handed q.

(** ** The order of units is total *)

Lemma weighted : forall q i e, sound q -> (i < size q)%nat -> start q i <= e -> e < top q i -> 0 < weight q i.
Proof.
  intros q i e [S _] Hi Hs Ht. unfold top in Ht. destruct (S i Hi).
  destruct (Z.eqb_spec (weight q i) 0); lia.
Qed.

Lemma start_top : forall q i, sound q -> (i < size q)%nat -> start q i <= top q i.
Proof. intros q i [S _] Hi. unfold top. destruct (S i Hi). destruct (Z.eqb_spec (weight q i) 0); lia. Qed.

Lemma before_earlier : forall q i k k' j l l',
  0 <= weight q i -> 0 <= weight q j -> k' <= k -> l <= l' -> before q i k j l -> before q i k' j l'.
Proof. unfold before, odd. intros q i k k' j l l' Hi Hj Hk Hl [H|[H H']]; [left|]; nia. Qed.

Lemma before_trans : forall q i k j l m n,
  0 < weight q i -> 0 < weight q j -> 0 < weight q m -> before q i k j l -> before q j l m n -> before q i k m n.
Proof.
  unfold before. intros q i k j l m n Hi Hj Hm.
  set (a := odd q i k). set (b := odd q j l). set (c := odd q m n).
  set (u := weight q i) in *. set (v := weight q j) in *. set (w := weight q m) in *.
  intros [H|[H H']] [G|[G G']].
  - left. apply Z.mul_lt_mono_pos_r with v; [lia|]. nia.
  - left. apply Z.mul_lt_mono_pos_r with v; [lia|]. nia.
  - left. apply Z.mul_lt_mono_pos_r with v; [lia|]. nia.
  - right. split; [|lia]. apply Z.mul_reg_r with v; [lia|]. nia.
Qed.

Lemma before_irrefl : forall q i k, ~ before q i k i k.
Proof. unfold before. intros. lia. Qed.

Lemma before_total : forall q i k j l, i <> j -> before q i k j l \/ before q j l i k.
Proof. unfold before. intros. lia. Qed.

(** ** What is stable is unique, and grows with the amount *)

(** If one stable division hands out no more than another in sum, no child has more in it. The amounts may differ. *)
Lemma stable_le : forall q q' e e',
  sound q ->
  size q' = size q -> weight q' = weight q -> start q' = start q -> ceiling q' = ceiling q -> base q' = base q ->
  within q e -> stable q e -> within q' e' -> stable q' e' ->
  sum (size q) e <= sum (size q) e' -> forall i, (i < size q)%nat -> e i <= e' i.
Proof.
  intros q q' e e' S Hn Hw Hs Hc Hb We Se We' Se' Hsum i Hi.
  assert (T : forall k, top q' k = top q k) by (intros; unfold top; now rewrite Hw, Hs, Hc).
  destruct (Z_lt_le_dec (e' i) (e i)) as [Hlt|]; [exfalso|assumption].
  destruct (sum_witness (size q) e e' i Hi Hlt Hsum) as [j [Hj Hjlt]].
  pose proof (We i Hi). pose proof (We j Hj).
  pose proof (We' i ltac:(lia)) as Wi. pose proof (We' j ltac:(lia)) as Wj. rewrite T, Hs in Wi, Wj.
  assert (i <> j) by (intros ->; lia).
  assert (Pi : 0 < weight q i) by (apply weighted with (e' i); lia || assumption).
  assert (Pj : 0 < weight q j) by (apply weighted with (e j); lia || assumption).
  assert (A : before q i (e i) j (e j + 1)) by (apply Se; lia).
  assert (B : before q' j (e' j) i (e' i + 1)) by (apply Se'; rewrite ?T, ?Hs; lia).
  assert (B' : before q j (e' j) i (e' i + 1)) by (unfold before, odd in *; rewrite Hw, Hb in B; exact B).
  apply (before_irrefl q i (e i)). apply before_trans with j (e j + 1); try assumption.
  apply before_earlier with (e' j) (e' i + 1); lia || assumption.
Qed.

Theorem unique : forall q e e', sound q -> division q e -> division q e' -> forall i, (i < size q)%nat -> e i = e' i.
Proof.
  intros q e e' S [We [Se Te]] [We' [Se' Te']] i Hi.
  apply Z.le_antisymm; eapply stable_le with (q := q) (q' := q); eauto; lia.
Qed.

(** ** The procedure makes it *)

Lemma first_none : forall q e l, first q e l = None -> forall i, In i l -> top q i <= e i.
Proof.
  induction l as [|x l IH]; cbn; intros H i []; subst.
  - destruct (Z.ltb_spec (e i) (top q i)); [|assumption]. destruct (first q e l) as [j|]; [destruct (before_b _ _ _ _ _)|]; discriminate.
  - destruct (Z.ltb_spec (e x) (top q x)); [|auto]. destruct (first q e l) as [j|]; [destruct (before_b _ _ _ _ _)|]; discriminate.
Qed.

Lemma first_some : forall q e l k,
  (forall i, In i l -> e i < top q i -> 0 < weight q i) ->
  first q e l = Some k ->
  In k l /\ e k < top q k /\ forall i, In i l -> i <> k -> e i < top q i -> before q k (e k + 1) i (e i + 1).
Proof.
  induction l as [|x l IH]; cbn; intros k P H; [discriminate|].
  destruct (Z.ltb_spec (e x) (top q x)) as [Hx|Hx].
  - destruct (first q e l) as [j|] eqn:F.
    + destruct (IH j ltac:(auto) eq_refl) as [Hj [Tj Bj]].
      destruct (before_b q j (e j + 1) x (e x + 1)) eqn:B; injection H as <-.
      * apply before_spec in B. repeat split; auto. intros i [<-|Hi] Hne Ht; auto.
      * assert (N : x <> j -> before q x (e x + 1) j (e j + 1)).
        { intros Hne. destruct (before_total q x (e x + 1) j (e j + 1) Hne) as [|C]; [assumption|].
          apply before_spec in C. congruence. }
        repeat split; auto. intros i [<-|Hi] Hne Ht; [congruence|].
        destruct (Nat.eq_dec i j) as [->|Hij]; [apply N; congruence|].
        destruct (Nat.eq_dec x j) as [->|Hxj]; [auto|].
        apply before_trans with j (e j + 1); auto.
    + injection H as <-. repeat split; auto. intros i [<-|Hi] Hne Ht; [congruence|].
      pose proof (first_none q e l F i Hi). lia.
  - destruct (IH k ltac:(auto) H) as [Hk [Tk Bk]]. repeat split; auto.
    intros i [<-|Hi] Hne Ht; [lia|auto].
Qed.

Lemma hand_out_right : forall q units e,
  sound q -> within q e -> stable q e -> sum (size q) e + Z.of_nat units = handed q -> division q (hand_out q units e).
Proof.
  intros q units. induction units as [|n IH]; intros e S We Se Hsum.
  - cbn. split; [|split]; auto. lia.
  - cbn [hand_out]. destruct (first q e (seq 0 (size q))) as [k|] eqn:F.
    + apply first_some in F as [Hk [Tk Bk]].
      2: { intros i Hi Ht. apply in_seq in Hi. apply weighted with (e i); auto; try lia. apply We. lia. }
      apply in_seq in Hk. pose proof (We k ltac:(lia)).
      assert (Pk : 0 < weight q k) by (apply weighted with (e k); lia || assumption).
      assert (P : forall j, (j < size q)%nat -> 0 <= weight q j) by (intros j Hj; apply S; assumption).
      apply IH; auto.
      * intros i Hi. destruct (Nat.eq_dec i k) as [->|Hne].
        -- rewrite one_more_same. lia.
        -- rewrite one_more_other by assumption. auto.
      * intros i j Hi Hj Hne Hsi Htj.
        destruct (Nat.eq_dec i k) as [->|Hik].
        -- rewrite one_more_same in *. rewrite one_more_other in * by congruence.
           apply Bk; auto. apply in_seq. lia.
        -- rewrite (one_more_other e k i) in * by assumption.
           destruct (Nat.eq_dec j k) as [->|Hjk].
           ++ rewrite one_more_same in *. apply before_earlier with (e i) (e k + 1); auto; lia.
           ++ rewrite (one_more_other e k j) in * by assumption. apply Se; auto.
      * rewrite one_more_sum by lia. lia.
    + exfalso. pose proof (first_none q e _ F) as H.
      assert (sum (size q) (top q) <= sum (size q) e) by (apply sum_le; intros; apply H, in_seq; lia).
      unfold handed in Hsum. lia.
Qed.

Theorem webster_right : forall q, sound q -> division q (webster q).
Proof.
  intros q S. unfold webster. pose proof S as [_ Hs].
  assert (sum (size q) (start q) <= sum (size q) (top q)) by (apply sum_le; intros; apply start_top; assumption).
  apply hand_out_right; auto.
  - intros i Hi. pose proof (start_top q i S Hi). lia.
  - intros i j Hi Hj Hne H1. lia.
  - unfold handed in *. lia.
Qed.

(** Whatever is stable is what the procedure makes. *)
Corollary division_webster : forall q e, sound q -> division q e -> forall i, (i < size q)%nat -> e i = webster q i.
Proof. intros. apply unique with q; auto using webster_right. Qed.

(** ** The level *)

(** [num / den] is the signpost of the last unit that was given. *)
Definition last_signpost (q : question) (e : nat -> Z) (num den : Z) : Prop :=
  (exists i, (i < size q)%nat /\ start q i < e i /\ 2 * weight q i * num = odd q i (e i) * den)
  /\ forall i, (i < size q)%nat -> start q i < e i -> odd q i (e i) * den <= 2 * weight q i * num.

(** A share is base + weight * level, rounded to a whole number (a half either way), but at least [start] and at most [top]. *)
Theorem level_rounds : forall q e num den i,
  sound q -> division q e -> 0 < den -> last_signpost q e num den -> (i < size q)%nat ->
  exists x, e i = Z.max (start q i) (Z.min x (top q i))
    /\ 2 * den * (x - base q i) - den <= 2 * weight q i * num <= 2 * den * (x - base q i) + den.
Proof.
  intros q e num den i S [We [Se _]] Hden [[k [Hk [Hks Hke]]] Hmax] Hi.
  pose proof (We i Hi) as Wi. pose proof (We k Hk) as Wk.
  assert (Pk : 0 < weight q k) by (apply weighted with (start q k); lia || assumption).
  assert (Pi : 0 <= weight q i) by (apply S; assumption).
  (* The unit that base + weight * level is rounded to, a half down. *)
  set (y := (2 * weight q i * num + den - 1) / (2 * den)).
  pose proof (Z.div_mod (2 * weight q i * num + den - 1) (2 * den) ltac:(lia)) as Hd.
  pose proof (Z.mod_pos_bound (2 * weight q i * num + den - 1) (2 * den) ltac:(lia)) as Hm.
  fold y in Hd.
  destruct (Z_lt_le_dec (start q i) (e i)) as [Hs|Hs].
  - pose proof (Hmax i Hi Hs) as Hle. unfold odd in Hle.
    destruct (Z_lt_le_dec (e i) (top q i)) as [Ht|Ht].
    + exists (e i). split; [lia|]. split; [lia|].
      destruct (Nat.eq_dec k i) as [->|Hne]; [unfold odd in Hke; lia|].
      assert (B : before q k (e k) i (e i + 1)) by (apply Se; auto).
      unfold before, odd in *.
      assert ((2 * (e k - base q k) - 1) * weight q i <= (2 * (e i + 1 - base q i) - 1) * weight q k) by lia.
      apply Z.mul_le_mono_pos_r with (weight q k); [lia|]. nia.
    + exists (Z.max (e i) (base q i + y)). split; [lia|].
      assert (base q i + y >= e i \/ base q i + y < e i) as [|] by lia; [rewrite Z.max_r by lia; split; nia|].
      rewrite Z.max_l by lia. split; [lia|]. nia.
  - destruct (Z_lt_le_dec (e i) (top q i)) as [Ht|Ht].
    + assert (B : before q k (e k) i (e i + 1)) by (apply Se; auto; intros ->; lia).
      unfold before, odd in *.
      assert ((2 * (e k - base q k) - 1) * weight q i <= (2 * (e i + 1 - base q i) - 1) * weight q k) by lia.
      assert (2 * weight q i * num <= (2 * (e i + 1 - base q i) - 1) * den)
        by (apply Z.mul_le_mono_pos_r with (weight q k); [lia|]; nia).
      exists (Z.min (e i) (base q i + y)). split; [lia|].
      assert (base q i + y <= e i \/ base q i + y > e i) as [|] by lia; [rewrite Z.min_r by lia; split; nia|].
      rewrite Z.min_l by lia. split; nia.
    + exists (base q i + y). split; [lia|]. split; nia.
Qed.
