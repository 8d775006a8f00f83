(** Every step lowers a measure whose order is well-founded: every run ends, and no state comes back. *)

From Coq Require Import ZArith Lia List Bool Relations Wellfounded.
From Proof Require Import Sum Calm.
Import ListNotations.
Open Scope Z_scope.

(** T3, the order: an accepted plan lowers the potentials, compared from the left, if its victims count. *)
Theorem plan_lowers : forall c s p, fit_to_count c -> accepted_plan c s p = true -> demanded c (carried_out s p) = demanded c s ->
  less (map (fun i => Z.to_nat (potential c (carried_out s p) i)) [0%nat; 1%nat; 2%nat])
       (map (fun i => Z.to_nat (potential c s i)) [0%nat; 1%nat; 2%nat]).
Proof.
  intros c s p F H Hd. pose proof (fun i => plan_exact c s p i H Hd) as E. apply accepted_plan_spec in H as [Hc _].
  pose proof (fun i => potential_nonneg c s i F) as N. pose proof (fun i => potential_nonneg c (carried_out s p) i F) as N'.
  unfold calm in Hc. rewrite !orb_true_iff, !andb_true_iff, !orb_true_iff, !andb_true_iff, !Z.ltb_lt, !Z.eqb_eq in Hc.
  pose proof (E 0%nat). pose proof (E 1%nat). pose proof (E 2%nat).
  pose proof (N 0%nat). pose proof (N 1%nat). pose proof (N 2%nat).
  pose proof (N' 0%nat). pose proof (N' 1%nat). pose proof (N' 2%nat). cbn. lia.
Qed.

Lemma measure_less : forall c s s', fit_to_count c ->
  (passing c s' < passing c s \/ passing c s' = passing c s /\
   (potential c s' 0 < potential c s 0 \/ potential c s' 0 = potential c s 0 /\
    (potential c s' 1 < potential c s 1 \/ potential c s' 1 = potential c s 1 /\
     (potential c s' 2 < potential c s 2 \/ potential c s' 2 = potential c s 2 /\ waiting c s' < waiting c s)))) ->
  less (measure c s') (measure c s).
Proof.
  intros c s s' F H. unfold measure.
  pose proof (passing_nonneg c s). pose proof (passing_nonneg c s').
  pose proof (waiting_nonneg c s). pose proof (waiting_nonneg c s').
  pose proof (potential_nonneg c s 0 F). pose proof (potential_nonneg c s' 0 F).
  pose proof (potential_nonneg c s 1 F). pose proof (potential_nonneg c s' 1 F).
  pose proof (potential_nonneg c s 2 F). pose proof (potential_nonneg c s' 2 F).
  destruct H as [H|[-> [H|[-> [H|[-> [H|[-> H]]]]]]]]; cbn [map less length];
    repeat first [left; split; [lia|reflexivity] | right; split; [reflexivity|]].
Qed.

(** No allocation raises a potential. *)
Lemma allocation_raises_none : forall c s set i, fit_to_count c ->
  demanded c (fun t => s t || set t) = demanded c s ->
  potential c (fun t => s t || set t) i <= potential c s i.
Proof.
  intros c s set i F Hd. unfold potential. rewrite Hd. apply sum_le. intros q _. apply lack_less; [assumption|].
  intros d. apply sum_le. intros t _. destruct F as [_ Hr]. specialize (Hr t d).
  destruct (s t), (set t), (Nat.eqb _ q); cbn; lia.
Qed.

Lemma preemption_serves : forall c s p t0,
  here c t0 -> claimants p t0 = true -> s t0 = false ->
  (forall t, here c t -> victims p t = true -> s t = true /\ (priority (task_of c t) < priority (task_of c t0))%nat) ->
  waiting c (carried_out s p) < waiting c s.
Proof.
  intros c s p t0 Ht0 Hc Hs0 HV. unfold waiting, here in *.
  set (w := weight_of_priority c) in *. set (n := tasks c) in *.
  assert (Wpos : forall t, 0 < w t) by (intros; apply weight_of_priority_pos).
  set (gone := fun t => if victims p t then w t else 0).
  assert (G : sum n gone * (Z.of_nat n + 1) <= Z.of_nat n * w t0).
  { assert (forall t, (t < n)%nat -> gone t * (Z.of_nat n + 1) <= w t0).
    { intros t Ht. unfold gone. destruct (victims p t) eqn:V; [|specialize (Wpos t0); lia]. destruct (HV t Ht V) as [_ Hp].
      unfold w, weight_of_priority. fold n. rewrite Z.mul_comm, <- Z.pow_succ_r by lia. apply Z.pow_le_mono_r; lia. }
    generalize dependent (Z.of_nat n + 1). clear. intros z H. induction n as [|k IH]; [cbn; lia|].
    cbn [sum]. specialize (IH ltac:(auto)). specialize (H k ltac:(lia)). lia. }
  assert (sum n gone < w t0) by (specialize (Wpos t0); nia).
  assert (P : sum n (fun t => if carried_out s p t then 0 else w t) + sum n (fun t => if Nat.eqb t t0 then w t0 else 0)
    <= sum n (fun t => if s t then 0 else w t) + sum n gone).
  { rewrite <- !sum_plus. apply sum_le. intros t Ht. unfold carried_out, gone. specialize (Wpos t).
    destruct (Nat.eqb_spec t t0) as [->|Hne].
    - rewrite Hc, Hs0, orb_true_r. destruct (victims p t0); lia.
    - destruct (s t), (victims p t), (claimants p t); cbn; lia. }
  rewrite (sum_unit n (fun t => if Nat.eqb t t0 then w t0 else 0) t0) in P.
  - rewrite Nat.eqb_refl in P. lia.
  - assumption.
  - intros t _ Hne. apply Nat.eqb_neq in Hne. rewrite Hne. reflexivity.
Qed.

Theorem step_lowers : forall c s s', fit_to_count c -> step c s s' -> less (measure c s') (measure c s).
Proof.
  intros c s s' F H. apply measure_less; [assumption|]. destruct H as [set t0 Ht0 Hset H|p H|p t0 Ht0 Hc HC HV HP].
  - destruct (demand_stays c s (fun t => s t || set t)) as [Hd Hp].
    + intros t _ E. rewrite E. discriminate.
    + intros t Ht E E'. rewrite E in E'. apply H; assumption.
    + pose proof (fun i => allocation_raises_none c s set i F Hd) as R.
      pose proof (R 0%nat). pose proof (R 1%nat). pose proof (R 2%nat).
      assert (waiting c (fun t => s t || set t) < waiting c s); [|lia].
      apply sum_lt with t0; [|assumption|].
      * intros t _. pose proof (weight_of_priority_pos c t). destruct (s t), (set t); cbn; lia.
      * rewrite Hset, orb_true_r. destruct (H t0 Ht0 Hset) as [-> _]. apply weight_of_priority_pos.
  - pose proof H as H'. apply accepted_plan_spec in H' as [_ [_ Ht]].
    destruct (demand_or_passing c s p) as [|[Hd Hp]]; [intros t Hh E; destruct (Ht t Hh) as [_ K]; destruct (K E) as [? [? _]]; auto| |lia|].
    + intros t Hh E. apply (Ht t Hh). assumption.
    + pose proof (plan_lowers c s p F H Hd) as L. cbn in L.
      pose proof (potential_nonneg c s 0 F). pose proof (potential_nonneg c (carried_out s p) 0 F).
      pose proof (potential_nonneg c s 1 F). pose proof (potential_nonneg c (carried_out s p) 1 F).
      pose proof (potential_nonneg c s 2 F). pose proof (potential_nonneg c (carried_out s p) 2 F). lia.
  - destruct (demand_or_passing c s p HC (fun t Hh E => proj1 (HV t Hh E))) as [|[_ Hp]]; [lia|].
    pose proof (HP 0%nat). pose proof (HP 1%nat). pose proof (HP 2%nat).
    pose proof (preemption_serves c s p t0 Ht0 Hc (proj1 (HC t0 Ht0 Hc)) HV). lia.
Qed.

(** T3: every run ends: there is no infinite sequence of allocations, plans and preemptions. *)
Theorem runs_end : forall c, fit_to_count c -> well_founded (fun s' s => step c s s').
Proof.
  intros c F. apply wf_incl with (fun s' s => less (measure c s') (measure c s)).
  - intros s' s H. apply step_lowers; assumption.
  - apply (wf_inverse_image _ _ less (measure c)). apply less_wf.
Qed.

Corollary no_endless_run : forall c, fit_to_count c -> forall run : nat -> state, ~ forall n, step c (run n) (run (S n)).
Proof.
  intros c F run H. assert (G : forall s, forall n, run n = s -> False).
  { intros s. induction (runs_end c F s) as [s _ IH]. intros n <-. apply (IH (run (S n)) (H n) (S n) eq_refl). }
  exact (G (run 0%nat) 0%nat eq_refl).
Qed.

(** T3: no state comes back, however long the sequence is. *)
Theorem no_circle : forall c, fit_to_count c -> forall s, ~ clos_trans state (step c) s s.
Proof.
  intros c F s H.
  assert (G : forall a b, clos_trans state (step c) a b -> less (measure c b) (measure c a)).
  { intros a b T. induction T as [a b T|a b d _ IH1 _ IH2]; [apply step_lowers; assumption|].
    revert IH1 IH2. generalize (measure c a), (measure c b), (measure c d). clear.
    intros x y z. revert y z. induction x as [|k x IH]; intros [|l y] [|j z]; cbn; try tauto.
    intros [[]|[]] [[]|[]]; subst.
    - left. split; [lia|congruence].
    - left. split; [assumption|]. transitivity (length y); [|assumption]. clear - H2. revert y H2.
      induction z as [|? z IH]; intros [|? y]; cbn; try tauto. intros [[]|[]]; [congruence|]. f_equal. apply IH. assumption.
    - left. split; [assumption|]. transitivity (length y); [assumption|]. clear - H0. revert y H0.
      induction x as [|? x IH]; intros [|? y]; cbn; try tauto. intros [[]|[]]; [congruence|]. f_equal. apply IH. assumption.
    - right. split; [reflexivity|]. apply IH with y; assumption. }
  pose proof (G s s H) as L. revert L. generalize (measure c s). clear.
  intros x. induction x as [|k x IH]; cbn; [tauto|]. intros [[]|[]]; [lia|auto].
Qed.

(** ** Fractions of the cluster *)

(** The common denominator of all dimensions. *)
Fixpoint product (n : nat) (f : nat -> Z) : Z := match n with O => 1 | S k => product k f * f k end.

(** For all totals above 0 there is a scale with which every part of the cluster is whole: held / total is scale * held, over one number. *)
Lemma common_scale : forall n total, (forall d, (d < n)%nat -> 0 < total d) ->
  exists scale whole, 0 < whole /\ (forall d, 0 <= scale d) /\ forall d, (d < n)%nat -> scale d * total d = whole.
Proof.
  induction n as [|n IH]; intros total H.
  - exists (fun _ => 0), 1. repeat split; lia.
  - destruct (IH total ltac:(auto)) as [scale [whole [Hw [Hs He]]]].
    pose proof (H n ltac:(lia)).
    exists (fun d => if Nat.eqb d n then whole else scale d * total n), (whole * total n). repeat split.
    + nia.
    + intros d. destruct (Nat.eqb d n); [lia|]. specialize (Hs d). nia.
    + intros d Hd. destruct (Nat.eqb_spec d n) as [->|]; [reflexivity|]. rewrite <- (He d) by lia. ring.
Qed.
