(** A greater weight never gets less, and what splitting a queue gains. *)

From Coq Require Import ZArith Lia List.
From Proof Require Import Sum Webster.
Open Scope Z_scope.

(** Unit [k] of [i] has no greater signpost than unit [l] of [j], each of its own question. *)
Lemma before_leb : forall q i k j l, before q i k j l -> odd q i k * weight q j <= odd q j l * weight q i.
Proof. unfold before. lia. Qed.

(** Only the weight of [i] differs, and it is no less in [q']. *)
Record heavier (q q' : question) (i : nat) : Prop := {
  heavier_size : size q' = size q;
  heavier_amount : amount q' = amount q;
  heavier_bounds : forall j, (j < size q)%nat -> start q' j = start q j /\ ceiling q' j = ceiling q j /\ base q' j = base q j;
  heavier_here : weight q i <= weight q' i;
  heavier_else : forall j, (j < size q)%nat -> j <> i -> weight q' j = weight q j
}.

Theorem weight_monotone : forall q q' i e e',
  heavier q q' i -> sound q -> sound q' -> (i < size q)%nat -> base q i <= start q i ->
  division q e -> division q' e' -> e i <= e' i.
Proof.
  intros q q' i e e' [Hn Ha Hbd Hi He] S S' In Hbase [We [Se Te]] [We' [Se' Te']].
  destruct (Z_lt_le_dec (e' i) (e i)) as [Hlt|]; [exfalso|assumption].
  assert (T : forall j, (j < size q)%nat -> j <> i -> top q' j = top q j).
  { intros j Hj Hne. destruct (Hbd j Hj) as [E1 [E2 _]]. unfold top. rewrite (He j Hj Hne), E1, E2. reflexivity. }
  pose proof (proj1 S i In) as [Pi Ci].
  assert (Tle : forall j, (j < size q)%nat -> top q j <= top q' j).
  { intros j Hj. destruct (Nat.eq_dec j i) as [->|Hne]; [|rewrite T by assumption; lia].
    destruct (Hbd i Hj) as [E1 [E2 _]]. unfold top. rewrite E1, E2. destruct (Z.eqb_spec (weight q i) 0); destruct (Z.eqb_spec (weight q' i) 0); lia. }
  assert (Hsum : sum (size q) e <= sum (size q) e').
  { rewrite Hn in Te'. rewrite Te, Te'. unfold handed. rewrite Ha, Hn. pose proof (sum_le _ _ _ Tle). lia. }
  destruct (sum_witness (size q) e e' i In Hlt Hsum) as [j [Hj Hjlt]].
  assert (Hne : i <> j) by (intros ->; lia).
  pose proof (We i In). pose proof (We j Hj).
  pose proof (We' i ltac:(lia)) as Wi. pose proof (We' j ltac:(lia)) as Wj.
  destruct (Hbd i In) as [Si [_ Bi]]. destruct (Hbd j Hj) as [Sj [_ Bj]]. rewrite Si in Wi. rewrite Sj, T in Wj by congruence.
  assert (0 < weight q i) by (apply weighted with (e' i); lia || assumption).
  assert (0 < weight q j) by (apply weighted with (e j); lia || assumption).
  pose proof (Tle i In).
  assert (A : before q i (e i) j (e j + 1)) by (apply Se; lia || assumption).
  assert (B : before q' j (e' j) i (e' i + 1)) by (apply Se'; rewrite ?Sj; lia || congruence).
  unfold before, odd in A, B. rewrite Bi, Bj, (He j) in B by congruence.
  assert (X : 2 * (e' i + 1 - base q i) - 1 <= 2 * (e i - base q i) - 1) by lia.
  assert (Y : 2 * (e j + 1 - base q j) - 1 <= 2 * (e' j - base q j) - 1) by lia.
  assert (P : 1 <= 2 * (e i - base q i) - 1) by lia.
  set (x := 2 * (e i - base q i) - 1) in *. set (y := 2 * (e j + 1 - base q j) - 1) in *.
  set (x' := 2 * (e' i + 1 - base q i) - 1) in *. set (y' := 2 * (e' j - base q j) - 1) in *.
  set (w := weight q i) in *. set (w' := weight q' i) in *. set (v := weight q j) in *.
  assert (x * v <= y * w) by lia.
  assert (0 < x * v) by (apply Z.mul_pos_pos; lia).
  assert (0 < y) by (apply Z.mul_pos_cancel_r with w; lia).
  assert (y * w <= y * w') by (apply Z.mul_le_mono_nonneg_l; lia).
  assert (y * w' <= y' * w') by (apply Z.mul_le_mono_nonneg_r; lia).
  assert (x' * v <= x * v) by (apply Z.mul_le_mono_nonneg_r; lia).
  lia.
Qed.

(** ** Splitting *)

(** In [q'] two brothers [a] and [b] stand in place of queue [i] of [q]; [old] is where the others are. The brothers have the weight, the
    start, the ceiling and the base of [i] in sum, and what a guarantee lifts, from the base to the start, is divided as the weight is. *)
Record split (q q' : question) (i a b : nat) (old : nat -> nat) : Prop := {
  split_amount : amount q' = amount q;
  split_brothers : (i < size q)%nat /\ (a < size q')%nat /\ (b < size q')%nat;
  split_others : forall j, (j < size q)%nat -> j <> i -> (old j < size q')%nat /\ old j <> a /\ old j <> b;
  split_all : forall f, sum (size q') f = sum (size q) (fun j => if Nat.eqb j i then f a + f b else f (old j));
  split_weight : weight q' a + weight q' b = weight q i;
  split_start : start q' a + start q' b = start q i;
  split_ceiling : ceiling q' a + ceiling q' b = ceiling q i;
  split_base : base q' a + base q' b = base q i;
  split_lift : forall k, k = a \/ k = b -> (start q' k - base q' k) * weight q i = (start q i - base q i) * weight q' k;
  split_same : forall j, (j < size q)%nat -> j <> i ->
    weight q' (old j) = weight q j /\ start q' (old j) = start q j /\ ceiling q' (old j) = ceiling q j /\ base q' (old j) = base q j
}.

(** The two brothers together get at most one unit more than the one queue. *)
Theorem split_gains_one : forall q q' i a b old e e',
  split q q' i a b old -> sound q -> sound q' -> division q e -> division q' e' -> e' a + e' b <= e i + 1.
Proof.
  intros q q' i a b old e e' [Ha [Hi [HA HB]] Ho Hall Hw Hs Hc Hb Hl Hsame] S S' [We [Se Te]] [We' [Se' Te']].
  destruct (Z_le_gt_dec (e' a + e' b) (e i + 1)) as [|Hgt]; [assumption|exfalso].
  pose proof (We i Hi) as Wi. pose proof (We' a HA) as Wa. pose proof (We' b HB) as Wb.
  pose proof (proj1 S i Hi) as [Pi Ci]. pose proof (proj1 S' a HA) as [Pa Ca]. pose proof (proj1 S' b HB) as [Pb Cb].
  assert (Ti : top q' a + top q' b <= top q i).
  { unfold top. destruct (Z.eqb_spec (weight q i) 0); destruct (Z.eqb_spec (weight q' a) 0); destruct (Z.eqb_spec (weight q' b) 0); lia. }
  set (f := fun j => if Nat.eqb j i then e' a + e' b else e' (old j)).
  assert (Hsum : sum (size q) f <= sum (size q) e).
  { unfold f. rewrite <- (Hall e'), Te, Te'. unfold handed. rewrite Ha, (Hall (top q')).
    assert (sum (size q) (fun j => if Nat.eqb j i then top q' a + top q' b else top q' (old j)) <= sum (size q) (top q)).
    { apply sum_le. intros j Hj. destruct (Nat.eqb_spec j i) as [->|Hne]; [assumption|].
      destruct (Hsame j Hj Hne) as [E1 [E2 [E3 _]]]. unfold top. rewrite E1, E2, E3. lia. }
    lia. }
  assert (Hfi : f i = e' a + e' b) by (unfold f; rewrite Nat.eqb_refl; reflexivity).
  destruct (sum_witness (size q) f e i Hi ltac:(lia) Hsum) as [j [Hj Hjlt]].
  assert (Hne : j <> i) by (intros ->; lia).
  assert (Hfj : f j = e' (old j)) by (unfold f; apply Nat.eqb_neq in Hne; rewrite Hne; reflexivity).
  destruct (Hsame j Hj Hne) as [E1 [E2 [E3 E4]]]. destruct (Ho j Hj Hne) as [O1 [O2 O3]].
  assert (Tj : top q' (old j) = top q j) by (unfold top; rewrite E1, E2, E3; reflexivity).
  pose proof (We j Hj) as Wj. pose proof (We' (old j) O1) as Wj'. rewrite Tj, E2 in Wj'.
  assert (Pj : 0 < weight q j) by (apply weighted with (e' (old j)); lia || assumption).
  assert (Pi' : 0 < weight q i) by (apply weighted with (e i); lia || assumption).
  assert (A : before q j (e j) i (e i + 1)) by (apply Se; lia || assumption).
  apply before_leb in A. unfold odd in A.
  (* No brother's last unit has a signpost above that of the next unit of [i]. *)
  assert (B : forall k, k = a \/ k = b -> (2 * (e' k - base q' k) - 1) * weight q i <= (2 * (e i - base q i) + 1) * weight q' k).
  { intros k Hk.
    assert (Kn : (k < size q')%nat) by (destruct Hk; subst; assumption).
    assert (Pk : 0 <= weight q' k) by (apply S'; assumption).
    pose proof (Hl k Hk) as Lift.
    set (w := weight q i) in *. set (v := weight q j) in *. set (u := weight q' k) in *.
    destruct (Z_lt_le_dec (start q' k) (e' k)) as [Hsk|Hsk].
    - assert (C : before q' k (e' k) (old j) (e' (old j) + 1)).
      { apply Se'; try assumption; [destruct Hk; congruence|]. rewrite Tj. lia. }
      apply before_leb in C. unfold odd in C. rewrite E1, E4 in C. fold u v in C.
      set (c := 2 * (e' (old j) + 1 - base q j) - 1) in *. set (d := 2 * (e j - base q j) - 1) in *.
      set (x := 2 * (e' k - base q' k) - 1) in *. set (y := 2 * (e i - base q i) + 1) in *.
      replace (2 * (e i + 1 - base q i) - 1) with y in A by (unfold y; lia).
      assert (c <= d) by (unfold c, d; lia).
      apply Z.mul_le_mono_pos_r with v; [assumption|].
      assert (x * v * w <= c * u * w) by (apply Z.mul_le_mono_nonneg_r; lia).
      assert (c * (u * w) <= d * (u * w)) by (apply Z.mul_le_mono_nonneg_r; [apply Z.mul_nonneg_nonneg|]; lia).
      assert (d * w * u <= y * v * u) by (apply Z.mul_le_mono_nonneg_r; lia).
      lia.
    - (* At its start it has its part of what [i] has from its base to its start. *)
      replace (e' k) with (start q' k) by (pose proof (We' k Kn); lia).
      assert ((start q i - base q i) * u <= (e i - base q i) * u) by (apply Z.mul_le_mono_nonneg_r; lia).
      lia. }
  pose proof (B a ltac:(auto)) as Ba. pose proof (B b ltac:(auto)) as Bb.
  assert (F : (2 * (e' a + e' b - base q i) - 2) * weight q i <= (2 * (e i - base q i) + 1) * weight q i) by (rewrite <- Hw at 2; rewrite <- Hb in *; lia).
  apply Z.mul_le_mono_pos_r in F; lia.
Qed.
