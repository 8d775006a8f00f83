(** An accepted certificate determines the division: it is Webster's method with bounds, of what the queues are, and nothing else. *)

From Coq Require Import ZArith Lia List Bool.
From Proof Require Import Sum Webster Certificate.
Import ListNotations.
Open Scope Z_scope.

(** What a queue is in one dimension, in units: what is guaranteed, begins and is useful (lo, m and hi in docs/fair.md), and what it weighs
    if guarantees do not fit, if deserved amounts do not fit, and otherwise. *)
Record sibling := { name : Z; lo : Z; m : Z; hi : Z; guarantee : Z; deserved : Z; wants : Z }.

Definition nameless : sibling := {| name := 0; lo := 0; m := 0; hi := 0; guarantee := 0; deserved := 0; wants := 0 |}.

Definition all (f : sibling -> Z) (l : list sibling) : Z := sum (length l) (fun i => f (nth i l nameless)).

Definition sane (s : sibling) : Prop := 0 <= lo s <= m s /\ m s <= hi s /\ lo s <= guarantee s /\ m s <= deserved s /\ 0 <= wants s.

(** The three cases of docs/fair.md. *)
Definition which (l : list sibling) (y : Z) : way := if y <? all lo l then Guarantee else if y <? all m l then Deserved else Weight.

Definition weigh (w : way) (s : sibling) : Z := match w with Guarantee => guarantee s | Deserved => deserved s | _ => wants s end.
Definition from (w : way) (s : sibling) : Z := match w with Guarantee => 0 | Deserved => lo s | _ => m s end.
Definition to (w : way) (s : sibling) : Z := match w with Guarantee => lo s | Deserved => m s | _ => hi s end.
Definition counted (on_top : bool) (w : way) (s : sibling) : Z := match w with Guarantee | Deserved => 0 | _ => if on_top then m s else 0 end.

(** What docs/fair.md divides: [y] units among siblings in the order of rank. *)
Definition asked (on_top : bool) (l : list sibling) (y : Z) : question :=
  let w := which l y in {|
    size := length l;
    weight := fun i => weigh w (nth i l nameless);
    start := fun i => from w (nth i l nameless);
    ceiling := fun i => to w (nth i l nameless);
    base := fun i => counted on_top w (nth i l nameless);
    amount := y |}.

(** A portion states what a sibling is. *)
Definition states (w : way) (s : sibling) (p : portion) : Prop :=
  queue p = name s /\ guaranteed p = lo s /\ begin p = m s /\ useful p = hi s /\ weight_of p = weigh w s.

(** ** From the checks to the division *)

Lemma check_table_spec : forall on_top y t, check_table on_top y t = true <->
  divided t = y /\ 0 <= divided t /\ case t = way_of t
  /\ (forall p, In p (children t) -> check_child on_top (case t) p = true)
  /\ within (question_of t) (shares t) /\ sum (size (question_of t)) (shares t) = handed (question_of t)
  /\ stable (question_of t) (shares t) /\ level t = reduced (highest (question_of t) (shares t) (seq 0 (size (question_of t)))).
Proof.
  intros. unfold check_table. rewrite !andb_true_iff, Z.eqb_eq, Z.leb_le, way_eqb_eq, forallb_forall, within_spec, stable_spec, level_eqb_eq.
  rewrite Z.eqb_eq. unfold total, shares. cbn. intuition.
Qed.

Lemma check_child_spec : forall on_top w p, check_child on_top w p = true <->
  (start_of p, ceiling_of p, base_of p) = span on_top w p
  /\ 0 <= guaranteed p <= useful p /\ begin p = Z.max (guaranteed p) (Z.min (begin p) (useful p))
  /\ least_weight w p <= weight_of p
  /\ bound_of p = (if share p =? ceiling_of p then Upper else if share p =? start_of p then Lower else Level).
Proof.
  intros on_top w p. unfold check_child. destruct (span on_top w p) as [[s c] b].
  rewrite !andb_true_iff, !Z.eqb_eq, !Z.leb_le, bound_eqb_eq.
  split.
  - intros [[[[[[[-> ->] ->] H1] H2] H3] H4] H5]. auto.
  - intros [H [[H1 H2] [H3 [H4 H5]]]]. injection H as <- <- <-. auto 10.
Qed.

Lemma way_of_weigh : forall w, w = Guarantee \/ w = Deserved \/ w = Weight -> forall on_top s p,
  states w s p -> check_child on_top w p = true ->
  weight_of p = weigh w s /\ start_of p = from w s /\ ceiling_of p = to w s /\ base_of p = counted on_top w s
  /\ 0 <= weight_of p /\ start_of p <= ceiling_of p /\ 0 <= lo s <= m s /\ m s <= hi s /\ 0 <= base_of p <= start_of p.
Proof.
  intros w Hw on_top s p [_ [E1 [E2 [E3 E4]]]] C. apply check_child_spec in C as [H [H1 [H2 [H3 _]]]].
  rewrite E1, E2, E3 in *.
  destruct Hw as [->|[->| ->]]; cbn in *; injection H as -> -> ->; rewrite ?E1, ?E2, ?E3; repeat split; try lia;
    destruct on_top; lia.
Qed.

Lemma way_of_three : forall t, way_of t = Guarantee \/ way_of t = Deserved \/ way_of t = Weight.
Proof. intros. unfold way_of. destruct (divided t <? _); [|destruct (divided t <? _)]; auto. Qed.

Lemma Forall2_length : forall {A B} (R : A -> B -> Prop) l l', Forall2 R l l' -> length l = length l'.
Proof. intros A B R l l' H. induction H; cbn; congruence. Qed.

Lemma Forall2_nth : forall {A B} (R : A -> B -> Prop) l l' da db i, Forall2 R l l' -> (i < length l)%nat -> R (nth i l da) (nth i l' db).
Proof. intros A B R l l' da db i H. revert i. induction H; intros [|i] Hi; cbn in *; try lia; auto. apply IHForall2. lia. Qed.

Lemma totals : forall w l ps, Forall2 (states w) l ps -> total guaranteed ps = all lo l /\ total begin ps = all m l.
Proof.
  intros w l ps H. pose proof (Forall2_length _ _ _ H) as Hn. unfold total, all, child. rewrite <- Hn.
  split; apply sum_ext; intros i Hi; destruct (Forall2_nth _ _ _ nameless nobody i H Hi) as [_ [? [? _]]]; assumption.
Qed.

Definition same (q q' : question) : Prop :=
  size q' = size q /\ amount q' = amount q
  /\ forall i, (i < size q)%nat -> weight q' i = weight q i /\ start q' i = start q i /\ ceiling q' i = ceiling q i /\ base q' i = base q i.

Lemma same_division : forall q q' e, same q q' -> sound q -> division q e -> sound q' /\ division q' e.
Proof.
  intros q q' e [Hn [Ha H]] [S1 S2] [W [St T]].
  assert (Ht : forall i, (i < size q)%nat -> top q' i = top q i).
  { intros i Hi. destruct (H i Hi) as [E1 [E2 [E3 _]]]. unfold top. rewrite E1, E2, E3. reflexivity. }
  split; [split|split; [|split]].
  - intros i Hi. rewrite Hn in Hi. destruct (H i Hi) as [-> [-> [-> _]]]. apply S1. assumption.
  - rewrite Hn, Ha, (sum_ext _ _ (start q)); [assumption|]. intros i Hi. apply H. assumption.
  - intros i Hi. rewrite Hn in Hi. rewrite Ht by assumption. destruct (H i Hi) as [_ [-> _]]. apply W. assumption.
  - intros i j Hi Hj Hne Hs He. rewrite Hn in *. rewrite Ht in He by assumption.
    destruct (H i Hi) as [E1 [E2 [_ E4]]]. destruct (H j Hj) as [F1 [_ [_ F4]]]. rewrite E2 in Hs.
    specialize (St i j Hi Hj Hne Hs He). unfold before, odd in *. rewrite E1, F1, E4, F4. assumption.
  - rewrite Hn, T. unfold handed. rewrite Ha, Hn. f_equal. apply sum_ext. intros. symmetry. apply Ht. assumption.
Qed.

(** An accepted table is a division of what docs/fair.md divides. *)
Theorem accepted : forall on_top y l t,
  check_table on_top y t = true -> Forall2 (states (case t)) l (children t) ->
  divided t = y /\ case t = which l y /\ sound (asked on_top l y) /\ division (asked on_top l y) (shares t).
Proof.
  intros on_top y l t H HF. apply check_table_spec in H as [Hy [Hpos [Hc [Hch [W [T [St _]]]]]]].
  pose proof (Forall2_length _ _ _ HF) as Hlen.
  destruct (totals _ _ _ HF) as [Tlo Tm].
  assert (Hw : case t = which l y) by (rewrite Hc; unfold way_of, which; rewrite Tlo, Tm, Hy; reflexivity).
  split; [assumption|]. split; [assumption|].
  assert (K : forall i, (i < length l)%nat ->
    let s := nth i l nameless in let p := child (children t) i in
    weight_of p = weigh (case t) s /\ start_of p = from (case t) s /\ ceiling_of p = to (case t) s /\ base_of p = counted on_top (case t) s
    /\ 0 <= weight_of p /\ start_of p <= ceiling_of p /\ 0 <= lo s <= m s /\ m s <= hi s /\ 0 <= base_of p <= start_of p).
  { intros i Hi. apply way_of_weigh.
    - rewrite Hc. apply way_of_three.
    - apply Forall2_nth with (1 := HF). assumption.
    - apply Hch. apply nth_In. lia. }
  apply same_division with (question_of t); [| |split; [|split]; assumption].
  - split; [cbn; lia|]. split; [cbn; lia|]. cbn. rewrite <- Hlen, <- Hw. intros i Hi.
    destruct (K i Hi) as [-> [-> [-> [-> _]]]]. auto.
  - split; cbn; rewrite <- Hlen.
    + intros i Hi. destruct (K i Hi) as [_ [_ [_ [_ [K1 [K2 _]]]]]]. split; assumption.
    + rewrite (sum_ext _ _ (fun i => from (case t) (nth i l nameless))).
      2: { intros i Hi. destruct (K i Hi) as [_ [-> _]]. reflexivity. }
      rewrite Hw, Hy. unfold which. unfold all.
      destruct (Z.ltb_spec y (sum (length l) (fun i => lo (nth i l nameless)))); cbn.
      * clear - Hpos Hy. induction (length l); cbn; lia.
      * destruct (Z.ltb_spec y (sum (length l) (fun i => m (nth i l nameless)))); cbn; assumption.
Qed.

(** T1, for one division: the shares of an accepted table are those of the procedure. *)
Theorem accepted_webster : forall on_top y l t,
  check_table on_top y t = true -> Forall2 (states (case t)) l (children t) ->
  forall i, (i < length l)%nat -> shares t i = webster (asked on_top l y) i.
Proof.
  intros on_top y l t H HF i Hi. destruct (accepted _ _ _ _ H HF) as [_ [_ [S D]]].
  apply division_webster; assumption.
Qed.

(** ** A certificate exists *)

Definition certify_child (on_top : bool) (w : way) (e : Z) (s : sibling) : portion := {|
  queue := name s; guaranteed := lo s; begin := m s; useful := hi s;
  weight_of := weigh w s; start_of := from w s; ceiling_of := to w s; base_of := counted on_top w s;
  share := e; guarantee_line := 0; fair_line := 0;
  bound_of := if e =? to w s then Upper else if e =? from w s then Lower else Level |}.

Definition certify (on_top : bool) (l : list sibling) (y parent dimension : Z) (root : option portion) : table :=
  let q := asked on_top l y in
  let e := webster q in {|
    parent := parent; dimension := dimension; divided := y; case := which l y;
    level := reduced (highest q e (seq 0 (size q)));
    children := map (fun i => certify_child on_top (which l y) (e i) (nth i l nameless)) (seq 0 (length l));
    root := root |}.

Lemma child_certify : forall on_top l y p d r i, (i < length l)%nat ->
  child (children (certify on_top l y p d r)) i = certify_child on_top (which l y) (webster (asked on_top l y) i) (nth i l nameless).
Proof.
  intros. unfold child. cbn. rewrite (nth_indep _ nobody (certify_child on_top (which l y) (webster (asked on_top l y) 0%nat) (nth 0 l nameless)))
    by (rewrite map_length, seq_length; assumption).
  rewrite (map_nth (fun i => certify_child on_top (which l y) (webster (asked on_top l y) i) (nth i l nameless))), seq_nth by assumption. reflexivity.
Qed.

Lemma highest_ext : forall q q' e e' l, same q q' -> (forall i, In i l -> (i < size q)%nat) -> (forall i, (i < size q)%nat -> e' i = e i) ->
  highest q' e' l = highest q e l.
Proof.
  intros q q' e e' l [_ [_ H]] Hl He. induction l as [|i l IH]; cbn; [reflexivity|].
  rewrite IH by (intros; apply Hl; right; assumption).
  pose proof (Hl i (or_introl eq_refl)) as Hi. destruct (H i Hi) as [E1 [E2 [_ E4]]].
  unfold odd. rewrite E1, E2, E4, He by assumption. reflexivity.
Qed.

Lemma states_certify : forall on_top w e l,
  Forall2 (states w) l (map (fun i => certify_child on_top w (e i) (nth i l nameless)) (seq 0 (length l))).
Proof.
  intros on_top w e l.
  assert (G : forall k l', (forall i, (i < length l')%nat -> nth i l' nameless = nth (k + i) l nameless) ->
    Forall2 (states w) l' (map (fun i => certify_child on_top w (e i) (nth i l nameless)) (seq k (length l')))).
  { intros k l'. revert k. induction l' as [|s l' IH]; intros k H; cbn; constructor.
    - specialize (H 0%nat ltac:(cbn; lia)). cbn in H. rewrite Nat.add_0_r in H. rewrite <- H. repeat split.
    - apply IH. intros i Hi. specialize (H (S i) ltac:(cbn; lia)). cbn in H. rewrite H. f_equal. lia. }
  apply (G 0%nat l). reflexivity.
Qed.

(** For every amount and all siblings there is a certificate that is accepted. *)
Theorem certified : forall on_top l y p d r, 0 <= y -> Forall sane l ->
  check_table on_top y (certify on_top l y p d r) = true
  /\ Forall2 (states (which l y)) l (children (certify on_top l y p d r)).
Proof.
  intros on_top l y p d r Hy Hs. set (t := certify on_top l y p d r).
  set (q := asked on_top l y). set (e := webster q).
  assert (F : Forall2 (states (which l y)) l (children t)).
  { apply states_certify. }
  split; [|assumption].
  assert (N : forall i, (i < length l)%nat -> sane (nth i l nameless)) by (intros i Hi; rewrite Forall_forall in Hs; apply Hs, nth_In; assumption).
  assert (Len : length (children t) = length l) by (cbn; rewrite map_length, seq_length; reflexivity).
  assert (Sq : same q (question_of t)).
  { split; [exact Len|]. split; [reflexivity|]. cbn [size q asked]. intros i Hi.
    cbn [weight start ceiling base question_of]. unfold t. rewrite child_certify by assumption. cbn. auto. }
  assert (Sound : sound q).
  { split; cbn.
    - intros i Hi. destruct (N i Hi) as [? [? [? [? ?]]]]. destruct (which l y); cbn; lia.
    - unfold which, all. destruct (Z.ltb_spec y (sum (length l) (fun i => lo (nth i l nameless)))); cbn.
      + clear - Hy. induction (length l); cbn; lia.
      + destruct (Z.ltb_spec y (sum (length l) (fun i => m (nth i l nameless)))); cbn; assumption. }
  assert (Esh : forall i, (i < length l)%nat -> shares t i = e i) by (intros i Hi; unfold shares, t; rewrite child_certify by assumption; reflexivity).
  destruct (same_division q (question_of t) e Sq Sound (webster_right q Sound)) as [Sound' [W [St T]]].
  destruct (totals _ _ _ F) as [Tlo Tm].
  apply check_table_spec. split; [reflexivity|]. split; [assumption|].
  split; [cbn [case t certify]; unfold way_of, which; rewrite Tlo, Tm; reflexivity|].
  assert (Size : size (question_of t) = length l) by exact Len.
  rewrite Size in *.
  split.
  { intros c Hc. cbn in Hc. apply in_map_iff in Hc as [i [<- Hi]]. apply in_seq in Hi.
    destruct (N i ltac:(lia)) as [? [? [? [? ?]]]]. apply check_child_spec.
    cbn [case t certify]. destruct (which l y); cbn; repeat split; try lia; reflexivity. }
  split; [intros i Hi; rewrite Size in Hi; rewrite Esh by assumption; apply W; rewrite Size; assumption|].
  split; [rewrite <- T; apply sum_ext; assumption|].
  split.
  - intros i j Hi Hj Hne H1 H2. rewrite Size in *. rewrite !Esh in * by assumption. apply St; rewrite ?Size; assumption.
  - cbn [level t certify]. f_equal. fold q e. replace (length l) with (size q) by reflexivity. symmetry.
    apply highest_ext; [exact Sq| |].
    + intros i Hi. apply in_seq in Hi. lia.
    + intros i Hi. apply Esh. exact Hi.
Qed.
